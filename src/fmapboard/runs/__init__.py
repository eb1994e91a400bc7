"""What event files hold, read without TensorBoard: the runs below a directory, and their series.

Usage::

    for folder in run_directories(Path("runs")):
        log = EventLog(folder)
        print(folder, log.problems, sorted(log.series))
"""
