"""The TensorBoard plugin of the Feature maps tab, without torch; the front end is in ``static``.

`loader.FeatureMapsLoader` is the entry point that TensorBoard imports. `plugin.FeatureMapsPlugin`
serves the front end's files and the data routes in `routes`::

    tensorboard --logdir runs        # finds the loader through the package's entry points
"""
