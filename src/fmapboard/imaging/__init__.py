"""What ``visualize``, ``patches`` and ``diff`` do with images, models and checkpoints.

`visualize.visualize` and `patches.patches` are the public functions; the commands use the same
parts with a model that `models.load` finds by its name::

    loaded = load_model(ModelRequest("resnet34", checkpoint=Path("mine.pt")))
    images = ReadImages.of(find_images([Path("photos")]), loaded.preprocessing)
"""
