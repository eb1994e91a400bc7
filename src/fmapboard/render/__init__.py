"""Turn arrays into pictures and pictures into PNG bytes, with NumPy only.

``Quantizer`` turns maps into one byte per pixel, ``draw_maps`` lays them out as a grid, and
``encode`` encodes the grid as a PNG::

    planes = Quantizer()("conv1", maps, maps.shape, maps.shape[1], "")     # maps: f32 [N, C, H, W]
    data = encode(draw_maps(planes, 0, palette("grey")))                   # sample 0
"""
