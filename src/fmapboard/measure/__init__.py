"""From a live tensor to a compact copy of it, and from that to numbers.

`Reducer` copies what will be drawn and takes the sums that statistics need, on the training thread;
``to_host`` finalizes the numbers, on any thread::

    pending = Reducer.for_model(model)(layer_call, "feature_maps", tensor, module)
    pending.to_host().statistics.mean        # f64 [C]
"""
