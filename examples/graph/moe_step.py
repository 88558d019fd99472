"""A training step of a GShard mixture of experts, every other layer: make() gives (step, arguments)."""

import jax

import models


def make(layers=2, width=64, heads=8, experts=8, batch=8, sequence=32, capacity=8, optimizer="sgd"):
    keys = jax.random.split(jax.random.key(0), layers + 2)
    parameters = {"layers": [
        models.moe_layer_parameters(k, width, heads, experts) if i % 2 == 0
        else models.gpt_layer_parameters(k, width, heads) for i, k in enumerate(keys[2:])]}
    x, target = (models.normal(k, batch, sequence, width) for k in keys[:2])

    def loss(p, x, target):
        for i, layer in enumerate(p["layers"]):
            if i % 2 == 0:
                x = models.moe_layer(layer, x, capacity)
            else:
                x = models.gpt_layer(layer, x)
        return ((x - target) ** 2).mean()

    if optimizer == "adam":
        return models.adam(loss), (models.adam_state(parameters), x, target)
    return models.sgd(loss), (parameters, x, target)
