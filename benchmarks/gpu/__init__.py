"""The sections of ``benchmarks/on_gpu.py``, one module each; each runs its checks with a `Report`::

report = Report(folder, command="python on_gpu.py", limit_s=480)
right.run(report, Settings(Device("cuda")))
report.failed                                   # number of failed checks
"""
