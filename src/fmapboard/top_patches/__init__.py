"""Find the crops of images that excite each channel of a layer most, in one pass per image.

``search`` keeps the best positions, ``fields`` measures which part of the image a position sees,
and ``pictures`` draws what was found::

    search = PatchSearch(model, layers=["layer1.*"])
    search.add(images)                                    # [N, C, H, W], as often as needed
    search.result()["layer1.0.conv1"].crops[3]            # of channel 3, best first
"""
