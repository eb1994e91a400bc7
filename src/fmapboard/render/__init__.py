"""From arrays to pictures to bytes, in numpy alone.

`Quantizer` turns maps into one byte per pixel, `draw_maps` lays them out as a grid, `encode` makes
a PNG of the grid::

    planes = Quantizer()("conv1", maps, maps.shape, maps.shape[1], "")     # maps: f32 [N, C, H, W]
    data = encode(draw_maps(planes, 0, palette("grey")))                   # sample 0
"""
