"""Read-only queries on the user's model.

``layers`` selects and names layers and follows replaced ones, ``kernel_shapes`` finds convolutions,
``roles`` tells activations with an off value and what attribution reads, ``modes`` what eval mode
changes, ``tensors`` finds tensors in nested values, ``given`` checks what a user passes, and
``distributed`` and ``flattened`` handle ranks and parameters that they share::

    select(model, "layer1.*")        # name -> module
    first_tensor(module(x))          # the first floating-point tensor of any output
"""
