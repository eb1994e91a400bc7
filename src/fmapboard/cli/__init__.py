"""The command line: ``fmapboard …`` and ``visualize``."""
