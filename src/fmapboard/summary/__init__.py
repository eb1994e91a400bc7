"""From one measured step to everything that is written of it, in numpy alone.

`Composer` builds pictures, histograms, scalars and the tab's records, `Budget` keeps them within a
number of bytes::

    step = Composer(colormap="viridis")(data)        # records.StepData -> records.LoggedStep
"""
