"""``python -m fmapboard``: the ``fmapboard`` command."""

from fmapboard.cli.main import run

if __name__ == "__main__":
    run()
