"""Callbacks for training frameworks; a module here is imported only where its framework is.

`lightning`, `transformers`, `ignite` and `accelerate` drive a `training_run.TrainingRun`::

    from fmapboard.integrations.lightning import FeatureMapCallback
    trainer = Trainer(callbacks=[FeatureMapCallback(every=100)])
"""
