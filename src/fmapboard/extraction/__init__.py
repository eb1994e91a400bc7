"""Run a model once and return what its layers receive and return, or the gradients of these.

A model's parameters, ``.grad``, buffers, modes and the random states are the same afterwards, and
no hook stays on it, even after an error::

    maps = extract(model, images)
    maps["layer1.0.conv1"]
"""
