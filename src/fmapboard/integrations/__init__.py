"""Callbacks for training frameworks; each module needs its framework, and imports it when used.

`lightning`, `transformers`, `ignite` and `accelerate` drive a `training_run.TrainingRun`::

    from fmapboard.integrations.lightning import FeatureMapCallback
    trainer = Trainer(callbacks=[FeatureMapCallback(every=100)])
"""
