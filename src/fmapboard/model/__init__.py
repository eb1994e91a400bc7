"""Read-only queries on the user's model.

``layers`` selects and names layers and follows replaced ones, ``kernel_shapes`` finds convolutions,
``blocks`` those of transformers and their parts, and ``routers`` what chooses among experts.
``roles`` tells activations with an off value and what attribution reads, ``modes`` what eval mode
changes, ``tensors`` finds tensors in nested values, ``living`` the objects of a class, ``given``
checks what a user passes, and ``distributed`` handles
ranks and the parameters that they share::

    select(model, "layer1.*")        # name -> module
    first_tensor(module(x))          # the first floating-point tensor of any output
"""
