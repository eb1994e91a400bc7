"""Read a watched tensor on a CUDA device in one launch, with kernels in Triton.

``statistics_kernel`` and ``tiles_kernel`` need Triton and are imported by ``launch``; everything
else works without it. A ``FusedReader`` compiles the kernels once, at ``watch()``, and declines
what they cannot read, which ``Reducer`` then reads with plain operations::

    reader = FusedReader(failed)
    reader.compile(torch.device("cuda", 0))
    found = reader.read(maps)                  # None: read it with plain operations
"""
