"""What is read of parameters and their gradients, around the optimizer's step.

``GradientReader`` reads norms and samples in the pre-step hook of torch's optimizers,
``UpdateReader`` compares rows of the weights before and after the step, and ``LossScale`` knows
the factor of a ``GradScaler`` and the steps that it skipped::

    reader = GradientReader(WatchedLayers(model), guard)
"""
