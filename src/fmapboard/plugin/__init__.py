"""TensorBoard's side of the Feature maps tab, without torch; the front end is in ``static``.

`loader.FeatureMapsLoader` is the entry point that TensorBoard imports, `plugin.FeatureMapsPlugin`
serves the files of the front end and the answers of `routes`::

    tensorboard --logdir runs        # finds the loader through the package's entry points
"""
