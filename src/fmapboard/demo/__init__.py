"""The demonstration: a small network, the photographs that it is trained on, and its training loop.

`network.DemoNetwork`, `photographs.Photographs`, `training.train`; `bundled` finds files that ship
with the package::

    train(DemoNetwork(), Photographs.load(), steps=50)
"""
