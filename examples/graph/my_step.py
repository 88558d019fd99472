"""A step of your own: any function of arrays and nested dictionaries of them. This one is an MLP."""

import jax

import models


def make(layers=4, width=128, batch=64, optimizer="sgd"):
    keys = jax.random.split(jax.random.key(0), layers + 2)
    parameters = [models.normal(k, width, width) for k in keys[2:]]
    x, target = (models.normal(k, batch, width) for k in keys[:2])

    def loss(p, x, target):
        for w in p:
            x = jax.nn.relu(x @ w)
        return ((x - target) ** 2).mean()

    if optimizer == "adam":
        return models.adam(loss), (models.adam_state(parameters), x, target)
    return models.sgd(loss), (parameters, x, target)
