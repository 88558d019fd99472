"""Small models in plain JAX: parameters are nested dictionaries, a model is a function of them."""

import jax
import jax.numpy as jnp


def normal(key, *shape):
    return jax.random.normal(key, shape, jnp.float64 if jax.config.jax_enable_x64 else jnp.float32) * 0.05


def layer_norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale


def rms_norm(x, scale):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def attend(q, k, v, causal):
    """q, k, v: [batch, sequence, heads, size]; fewer heads of k and v are shared by groups of q."""
    b, s, h, d = q.shape
    groups = k.shape[2]
    q = q.reshape(b, s, groups, h // groups, d)
    scores = jnp.einsum("bsghd,btgd->bghst", q, k) * d**-0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -1e9)
    mixed = jnp.einsum("bghst,btgd->bsghd", jax.nn.softmax(scores), v)
    return mixed.reshape(b, s, h * d)


def gpt_layer_parameters(key, width, heads):
    k = jax.random.split(key, 4)
    return {
        "norm1": jnp.ones(width, normal(k[0]).dtype), "norm2": jnp.ones(width, normal(k[0]).dtype),
        "qkv": normal(k[0], width, heads, 3, width // heads), "out": normal(k[1], width, width),
        "up": normal(k[2], width, 4 * width), "down": normal(k[3], 4 * width, width)}


def gpt_layer(p, x, causal=True):
    y = layer_norm(x, p["norm1"])
    qkv = jnp.einsum("bsm,mhcd->bshcd", y, p["qkv"])
    x = x + attend(qkv[:, :, :, 0], qkv[:, :, :, 1], qkv[:, :, :, 2], causal) @ p["out"]
    y = layer_norm(x, p["norm2"])
    return x + jax.nn.gelu(y @ p["up"]) @ p["down"]


def llama_layer_parameters(key, width, heads, groups, inner):
    k = jax.random.split(key, 7)
    size = width // heads
    return {
        "norm1": jnp.ones(width, normal(k[0]).dtype), "norm2": jnp.ones(width, normal(k[0]).dtype),
        "wq": normal(k[0], width, heads * size), "wk": normal(k[1], width, groups * size),
        "wv": normal(k[2], width, groups * size), "wo": normal(k[3], heads * size, width),
        "gate": normal(k[4], width, inner), "up": normal(k[5], width, inner),
        "down": normal(k[6], inner, width)}


def rotate(x):
    s, d = x.shape[1], x.shape[3]
    angle = jnp.arange(s)[:, None] * 1e4 ** (-jnp.arange(d // 2) / (d // 2))
    cos, sin = jnp.cos(angle)[None, :, None].astype(x.dtype), jnp.sin(angle)[None, :, None].astype(x.dtype)
    a, b = x[..., : d // 2], x[..., d // 2:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama_layer(p, x, heads, groups):
    b, s, m = x.shape
    size = m // heads
    y = rms_norm(x, p["norm1"])
    q = rotate((y @ p["wq"]).reshape(b, s, heads, size))
    k = rotate((y @ p["wk"]).reshape(b, s, groups, size))
    v = (y @ p["wv"]).reshape(b, s, groups, size)
    x = x + attend(q, k, v, True) @ p["wo"]
    y = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]


def moe_layer_parameters(key, width, heads, experts):
    k = jax.random.split(key, 5)
    p = gpt_layer_parameters(k[0], width, heads)
    del p["up"], p["down"]
    p["router"] = normal(k[1], width, experts)
    p["up"] = normal(k[2], experts, width, 4 * width)
    p["down"] = normal(k[3], experts, 4 * width, width)
    return p


def moe_layer(p, x, capacity):
    """GShard: tokens in groups (the batch), at most `capacity` of a group for an expert."""
    y = layer_norm(x, p["norm1"])
    qkv = jnp.einsum("bsm,mhcd->bshcd", y, p["qkv"])
    x = x + attend(qkv[:, :, :, 0], qkv[:, :, :, 1], qkv[:, :, :, 2], True) @ p["out"]
    y = layer_norm(x, p["norm2"])
    gates = jax.nn.softmax(jnp.einsum("gsm,me->gse", y, p["router"]))
    chosen = jax.nn.one_hot(jnp.argmax(gates, -1), gates.shape[-1], dtype=y.dtype)
    place = (jnp.cumsum(chosen, 1) * chosen).astype(jnp.int32)
    slot = jax.nn.one_hot(place - 1, capacity, dtype=y.dtype) * chosen[..., None]
    combine = slot * (gates * chosen).sum(-1)[..., None, None]
    sent = jnp.einsum("gsec,gsm->egcm", slot, y)
    hidden = jax.nn.gelu(jnp.einsum("egcm,emh->egch", sent, p["up"]))
    back = jnp.einsum("egch,ehm->egcm", hidden, p["down"])
    return x + jnp.einsum("gsec,egcm->gsm", combine, back)


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cross_entropy(logits, labels):
    logits = logits - jax.lax.stop_gradient(logits.max(-1, keepdims=True))
    log_sum = jnp.log(jnp.exp(logits).sum(-1))
    picked = (jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype) * logits).sum(-1)
    return (log_sum - picked).mean()


def sgd(loss, rate=0.05):
    def step(parameters, *batch):
        value, gradients = jax.value_and_grad(loss)(parameters, *batch)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients), value
    return step


def adam(loss, rate=1e-3):
    """State: parameters, first and second moments, and the count of steps."""
    def step(state, *batch):
        value, gradients = jax.value_and_grad(loss)(state["parameters"], *batch)
        count = state["count"] + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["first"], gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["second"], gradients)
        scale = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        moved = jax.tree.map(lambda p, m, v: p - (scale * m / (jnp.sqrt(v) + 1e-8)).astype(p.dtype),
                             state["parameters"], first, second)
        return {"parameters": moved, "first": first, "second": second, "count": count}, value
    return step


def adam_state(parameters):
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return {"parameters": parameters, "first": zeros, "second": zeros,
            "count": jnp.zeros((), jnp.float32)}
