"""Finds a model by what was typed, loads its weights, and says what its input must look like.

`load.load_model` understands torchvision, timm, ``package.module:callable`` and the demo network::

    loaded = load_model("resnet34", checkpoint=Path("mine.pt"))
    loaded.model(loaded.preprocessing(image)[None])
"""
