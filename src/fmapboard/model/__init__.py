"""Read-only queries on the user's model.

``layers`` selects and names layers, ``activations`` finds activation modules with an off value,
``tensors`` finds tensors in nested values, ``given`` checks what a user passes, ``membership``
detects replaced modules, and ``distributed`` handles ranks and sharded parameters::

    select(model, "layer1.*")        # name -> module
    first_tensor(module(x))          # the first floating-point tensor of any output
"""
