"""Models from command-line arguments: found by name, weights loaded, with their preprocessing.

`load.load_model` understands torchvision, timm, ``package.module:callable`` and the demo network::

    loaded = load_model("resnet34", checkpoint=Path("mine.pt"))
    loaded.model(loaded.preprocessing(image)[None])
"""
