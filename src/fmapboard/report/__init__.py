"""One HTML file that shows logged runs as the tab does, without TensorBoard and without torch.

Usage::

    from fmapboard.report.write import write_report
    written = write_report([Path("runs/demo")], Path("run.html"), steps=8)
"""
