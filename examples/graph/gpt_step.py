"""A training step of a GPT decoder: make() gives (step, arguments)."""

import jax
import jax.numpy as jnp

import models


def make(layers=2, width=64, heads=8, batch=8, sequence=32, vocabulary=128, optimizer="sgd"):
    keys = jax.random.split(jax.random.key(0), layers + 3)
    parameters = {
        "embedding": models.normal(keys[0], vocabulary, width),
        "layers": [models.gpt_layer_parameters(k, width, heads) for k in keys[3:]],
        "head": models.normal(keys[1], width, vocabulary)}
    tokens = jax.random.randint(keys[2], (batch, sequence), 0, vocabulary)

    def loss(p, tokens, labels):
        x = p["embedding"][tokens]
        for layer in p["layers"]:
            x = models.gpt_layer(layer, x)
        return models.cross_entropy(x @ p["head"], labels)

    labels = jnp.roll(tokens, -1, 1)
    if optimizer == "adam":
        return models.adam(loss), (models.adam_state(parameters), tokens, labels)
    return models.sgd(loss), (parameters, tokens, labels)
