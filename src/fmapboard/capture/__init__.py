"""The code that runs inside a user's training step, without changing the training.

``HookRegistry`` installs hooks for the duration of a block and delivers one forward pass, which a
``PassPolicy`` chooses, to a ``CaptureListener``, such as an ``ActivationCollector``::

    with HookRegistry(model, "layer1.*").listening(ActivationCollector(reducer, guard)):
        model(x)
"""
