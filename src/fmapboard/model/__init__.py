"""Asks the user's model, and keeps nothing of it.

`layers` chooses and names layers, `activations` knows which have a floor, `tensors` finds tensors
in nested values, `distributed` tells which part of a parameter this process has::

    select(model, "layer1.*")        # name -> module
    first_tensor(module(x))          # the first floating-point tensor of any output
"""
