"""The command line: ``fmapboard …`` and ``visualize``.

`main` declares the commands, and imports what each needs when it runs::

    run(["demo", "--steps", "50"])
"""
