"""What a run says, without torch: states of layers, the table of health, findings of the checks.

A record is collected step by step, and the checks are called with it (`fmapboard.checks` has the
public names)::

    builder = RecordBuilder(run="runs/exp1")
    builder.add_scalars(0, {"gradient_norm/total": 1.5})
    run_checks(builder.record()).findings
"""
