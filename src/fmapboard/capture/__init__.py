"""The code that runs inside a user's training step, without changing the training.

`HookRegistry` installs hooks for the length of a block and delivers one forward pass to a
`CaptureListener`; `ActivationCollector` is such a listener, `GradientReader` reads parameters::

    with HookRegistry(model, "layer1.*").listening(ActivationCollector(reducer, guard)):
        model(x)
"""
