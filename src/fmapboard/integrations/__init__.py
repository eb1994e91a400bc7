"""Callbacks for training frameworks; importing a module here imports its framework.

`lightning`, `transformers` and `ignite` drive a `training_run.TrainingRun`; `accelerate` returns
a logger::

    from fmapboard.integrations.lightning import FeatureMapCallback
    trainer = Trainer(callbacks=[FeatureMapCallback(every=100)])
"""
