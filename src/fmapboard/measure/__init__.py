"""Reduce a live tensor to a compact copy, and that copy to numbers.

On the training thread, ``Reducer`` copies what will be drawn and computes the sums that the
statistics need. ``to_host`` finalizes the numbers, on any thread::

    pending = Reducer()(layer_call, "feature_maps", tensor, module)
    pending.to_host().statistics.mean        # f64 [C]
"""
