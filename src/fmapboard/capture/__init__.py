"""The code that runs inside a user's training step, without changing the training.

``HookRegistry`` installs hooks for the duration of a block and delivers one forward pass to a
``CaptureListener``. ``ActivationCollector`` is such a listener; ``GradientReader`` reads gradients
and weights::

    with HookRegistry(model, "layer1.*").listening(ActivationCollector(reducer, guard)):
        model(x)
"""
