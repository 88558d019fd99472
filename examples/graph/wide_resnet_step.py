"""A training step of a wide residual network: make() gives (step, arguments)."""

import jax
import jax.numpy as jnp

import models


def make(blocks=3, width=32, batch=16, size=16, classes=16, optimizer="sgd"):
    keys = jax.random.split(jax.random.key(0), 2 * blocks + 3)
    parameters = {
        "stem": models.normal(keys[0], 3, 3, 3, width),
        "blocks": [{"first": models.normal(keys[2 * i + 3], 3, 3, width, width),
                    "second": models.normal(keys[2 * i + 4], 3, 3, width, width),
                    "scale": jnp.ones(width, models.normal(keys[0]).dtype)} for i in range(blocks)],
        "head": models.normal(keys[1], width, classes)}
    images = models.normal(keys[2], batch, size, size, 3)
    labels = jnp.arange(batch) % classes

    def loss(p, images, labels):
        x = models.conv(images, p["stem"])
        for q in p["blocks"]:
            mean = x.mean((0, 1, 2))
            variance = ((x - mean) ** 2).mean((0, 1, 2))
            y = jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * q["scale"])
            y = jax.nn.relu(models.conv(y, q["first"]))
            x = x + models.conv(y, q["second"])
        return models.cross_entropy(x.mean((1, 2)) @ p["head"], labels)

    if optimizer == "adam":
        return models.adam(loss), (models.adam_state(parameters), images, labels)
    return models.sgd(loss), (parameters, images, labels)
