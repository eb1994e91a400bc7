"""Trains copies of a model for a few steps, to learn what the training itself does not show.

A ``TrainingCopy`` has parameters, buffers, random generators and an optimizer of its own, so the
caller's stay as they were::

    copied = TrainingCopy(model, optimizer)
    losses = copied.train([batch], lambda model, batch: loss(model(batch[0]), batch[1]), steps=20)
"""
