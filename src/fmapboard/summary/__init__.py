"""From one measured step to everything that is written about it, in numpy alone.

`SummaryBuilder` builds pictures, histograms, scalars and the tab's records, `Budget` keeps them
within a number of bytes::

    step = SummaryBuilder(colormap="viridis")(data)      # records.StepData -> records.LoggedStep
"""
