"""Load models named on the command line, with their weights and preprocessing.

`load.load_model` takes the names of torchvision, timm and Hugging Face models,
``package.module:callable`` and the demo network::

    loaded = load_model(ModelRequest("resnet34", checkpoint=Path("mine.pt")))
    loaded.model(loaded.preprocessing(image)[None])
"""
