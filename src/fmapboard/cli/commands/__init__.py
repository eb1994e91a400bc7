"""What each command does; `main` has their options.

A module is imported when its command runs::

    from fmapboard.cli.commands.check import check_runs

    status = check_runs([Path("runs/demo")], as_json=False, silenced=(), further=())
"""
