"""Change what the layers of a model return, receive or propagate, for the duration of a block.

``intervene`` installs hooks and removes them at the end of its block; ``silence``, ``scale``,
``replace`` and ``add`` say what becomes of chosen channels::

    with fmapboard.intervene(model, {"layer1.0.conv1": fmapboard.silence([3, 17])}):
        scores = model(images)
"""
