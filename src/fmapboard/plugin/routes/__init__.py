"""The tab's data routes: one function each, from a provider and parameters to a typed answer.

Neither they nor what they import need TensorBoard. Usage::

    provider = Files({"demo": EventLog(Path("runs/demo"))})
    layers(provider, "demo").steps    # answers data/layers?run=demo
"""
