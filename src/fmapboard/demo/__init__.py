"""The demonstration: a small network, the photographs that it learns, and its training loop.

`network.DemoNetwork`, `photographs.Photographs`, `training.train`, `bundled.bundled`::

    train(DemoNetwork(), Photographs.load(), steps=50)
"""
