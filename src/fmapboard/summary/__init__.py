"""Build everything that is written about a measured step, with NumPy only.

``SummaryBuilder`` builds pictures, histograms, scalars and the tab's records; ``byte_limit`` makes
pictures smaller::

    step = SummaryBuilder(colormap="viridis")(data)      # records.StepData -> records.LoggedStep
"""
