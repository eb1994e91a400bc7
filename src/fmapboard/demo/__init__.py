"""The demonstration: a small network, the photographs it is trained on, and its training loop.

Public names: `network.DemoNetwork`, `photographs.Photographs`, `training.train` and
`bundled.bundled`, the path of a file that ships with the package::

    train(DemoNetwork(), Photographs.load(), steps=50)
"""
