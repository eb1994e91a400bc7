"""From a live tensor to the little that is kept of it, and from that to numbers.

`Reducer` copies what is drawn and sums what is measured, on the training thread; ``to_host``
finalizes the numbers, in any thread::

    pending = Reducer.for_model(model)(call, "feature_maps", tensor, module)
    pending.to_host().statistics.mean        # f64 [C]
"""
