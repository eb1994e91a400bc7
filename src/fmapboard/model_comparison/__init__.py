"""Find the first layer in which two models differ.

``diff`` runs both models on the same images and measures, for each layer, the relative error that
comes in, that goes out, and that the layer itself adds::

    found = diff(model_a, model_b, images)
    found.first                     # 'layer2.0.bn1', or None
    found.layers[0].added           # relative error that the first layer adds

The second model runs in lockstep with the first one: each of its layers receives what the first
model's layer received, and the code between layers continues with what the first model's layer
returned. An error is therefore measured where it arises, and does not spread.
"""
