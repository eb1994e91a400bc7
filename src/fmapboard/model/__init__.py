"""Questions to the user's model; nothing here holds a reference to it.

`layers` chooses and names layers, `activations` finds modules that output a constant where they are
off, `tensors` finds tensors in nested values, `distributed` handles ranks and sharded parameters::

    select(model, "layer1.*")        # name -> module
    first_tensor(module(x))          # the first floating-point tensor of any output
"""
