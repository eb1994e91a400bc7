"""When a logged step opens and closes, and everything that is decided about it.

``Run`` opens and closes steps, ``StepSession`` is one model's open step, ``PassSelection`` decides
which forward pass counts, ``FactRecorder`` records what only training knows, ``Hints`` explains
why nothing was logged, and ``step`` puts everything together for the worker::

    session = StepSession(model, layers, options, scaler, warn)
    session.open(0, "training")
    loss(model(x)).backward()
    pending = session.close()        # a PendingStep for the worker thread, or None
"""
