"""A training step of a BERT encoder without embeddings: make() gives (step, arguments)."""

import jax

import models


def make(layers=2, width=64, heads=8, batch=8, sequence=16, optimizer="sgd"):
    keys = jax.random.split(jax.random.key(0), layers + 2)
    parameters = {"layers": [models.gpt_layer_parameters(k, width, heads) for k in keys[2:]]}
    x, target = (models.normal(k, batch, sequence, width) for k in keys[:2])

    def loss(p, x, target):
        for layer in p["layers"]:
            x = models.gpt_layer(layer, x, causal=False)
        return ((x - target) ** 2).mean()

    if optimizer == "adam":
        return models.adam(loss), (models.adam_state(parameters), x, target)
    return models.sgd(loss), (parameters, x, target)
