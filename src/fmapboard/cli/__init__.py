"""The command line: ``fmapboard …`` and ``visualize``.

`main` declares the commands; each command imports what it needs when it runs::

    run(["demo", "--steps", "50"])
"""
