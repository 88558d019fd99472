"""A training step of a Llama decoder: make() unrolled, make_scanned() as a scan that recomputes."""

import jax
import jax.numpy as jnp

import models


def make(layers=2, width=64, heads=8, groups=8, inner=128, batch=8, sequence=32, vocabulary=128,
         optimizer="sgd", scanned=False):
    keys = jax.random.split(jax.random.key(0), layers + 3)
    parameters = {
        "embedding": models.normal(keys[0], vocabulary, width),
        "layers": [models.llama_layer_parameters(k, width, heads, groups, inner) for k in keys[3:]],
        "head": models.normal(keys[1], width, vocabulary)}
    if scanned:
        parameters["layers"] = jax.tree.map(lambda *x: jnp.stack(x), *parameters["layers"])
    tokens = jax.random.randint(keys[2], (batch, sequence), 0, vocabulary)

    def loss(p, tokens, labels):
        x = p["embedding"][tokens]
        if scanned:
            layer = jax.checkpoint(lambda x, q: (models.llama_layer(q, x, heads, groups), None))
            x, _ = jax.lax.scan(layer, x, p["layers"])
        else:
            for q in p["layers"]:
                x = models.llama_layer(q, x, heads, groups)
        return models.cross_entropy(x @ p["head"], labels)

    labels = jnp.roll(tokens, -1, 1)
    if optimizer == "adam":
        return models.adam(loss), (models.adam_state(parameters), tokens, labels)
    return models.sgd(loss), (parameters, tokens, labels)


def make_scanned(**sizes):
    return make(scanned=True, **sizes)
