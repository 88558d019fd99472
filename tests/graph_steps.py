"""Training steps of kinds that no example has, each with something that a compiler treats in its own
way. make_NAME() gives (step, arguments)."""

import functools

import jax
import jax.numpy as jnp
import numpy
from jax import lax


def normal(seed, *shape, scale=0.05):
    kind = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32
    return jax.random.normal(jax.random.key(seed), shape, kind) * scale


def sgd(loss, rate=0.05):
    def step(parameters, *batch):
        value, gradients = jax.value_and_grad(loss)(parameters, *batch)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients), value
    return step


def make_routed(width=32, experts=8, batch=8, sequence=16, capacity=8):
    """Top-2 routing with a capacity: top-k, a running sum, one-hot products."""
    p = {"router": normal(1, width, experts), "up": normal(2, experts, width, 64),
         "down": normal(3, experts, 64, width), "out": normal(4, width, width)}

    def loss(p, x, y):
        gates = jax.nn.softmax(x @ p["router"])
        best, chosen = lax.top_k(gates, 2)
        chosen = jax.nn.one_hot(chosen, experts, dtype=x.dtype)
        order = jnp.cumsum(chosen.swapaxes(1, 2).reshape(batch, -1, experts), 1) - 1
        place = order.reshape(batch, 2, sequence, experts).swapaxes(1, 2)
        slot = jax.nn.one_hot((place * chosen).sum(-1).astype(int), capacity, dtype=x.dtype)
        combine = jnp.einsum("bsk,bske,bskc->bsec", best, chosen * (place < capacity), slot)
        sent = jnp.einsum("bsec,bsd->ebcd", (combine > 0).astype(x.dtype), x)
        hidden = jax.nn.relu(jnp.einsum("ebcd,edf->ebcf", sent, p["up"]))
        back = jnp.einsum("bsec,ebcd->bsd", combine, jnp.einsum("ebcf,efd->ebcd", hidden, p["down"]))
        return (((x + back) @ p["out"] - y) ** 2).mean()
    shape = (batch, sequence, width)
    return sgd(loss), (p, normal(5, *shape, scale=1), normal(6, *shape, scale=1))


def make_written(width=32, batch=8, sequence=16):
    """The place of the largest, rows that are written over others, random numbers from a typed key."""
    p = {"in": normal(1, width, width, scale=0.2), "out": normal(2, width, width, scale=0.2)}

    def loss(p, key, x, y):
        h = x @ p["in"]
        h = h + jax.nn.one_hot(jnp.argmax(h, -1), width, dtype=h.dtype)
        h = h.at[:, ::2].set(0.5) * jax.random.bernoulli(key, 0.9, h.shape)
        return ((h @ p["out"] - y) ** 2).mean()
    shape = (batch, sequence, width)
    return sgd(loss), (p, jax.random.key(7), normal(3, *shape, scale=1), normal(4, *shape, scale=1))


def make_grouped(channels=32, batch=8, size=8):
    """Convolutions in groups and in depth, rotations of complex numbers."""
    p = {"grouped": normal(1, 3, 3, channels // 4, channels), "depth": normal(2, 3, 3, 1, channels),
         "point": normal(3, channels, channels)}

    def conv(x, w, groups):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=groups,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(p, x, y):
        h = jax.nn.relu(conv(x, p["grouped"], 4))
        h = jax.nn.relu(conv(h, p["depth"], channels)) @ p["point"]
        turned = lax.complex(h[..., ::2], h[..., 1::2]) * jnp.exp(1j * jnp.arange(channels // 2))
        return ((jnp.concatenate([turned.real, turned.imag], -1).astype(y.dtype) - y) ** 2).mean()
    shape = (batch, size, size, channels)
    return sgd(loss), (p, normal(4, *shape, scale=1), normal(5, *shape, scale=1))


def make_accumulated(width=64, parts=4, batch=32):
    """Gradients summed by a loop, clipped by their norm; momentum, whose update devices share."""
    p = [normal(i, width, width) for i in range(3)]

    def loss(p, x, y):
        for w in p:
            x = jnp.tanh(x @ w)
        return ((x - y) ** 2).mean()

    def step(state, xs, ys):
        def add(sums, part):
            found = jax.value_and_grad(loss)(state["p"], *part)
            return jax.tree.map(jnp.add, sums, found), None
        zeros = (jnp.zeros((), xs.dtype), jax.tree.map(jnp.zeros_like, state["p"]))
        (value, g), _ = lax.scan(add, zeros, (xs, ys))
        norm = jnp.sqrt(sum((w * w).sum() for w in g))
        m = jax.tree.map(lambda a, b: 0.9 * a + b / jnp.maximum(norm, 1), state["m"], g)
        return {"p": jax.tree.map(lambda a, b: a - 0.05 * b, state["p"], m), "m": m}, value / parts
    state = {"p": p, "m": jax.tree.map(jnp.zeros_like, p)}
    shape = (parts, batch, width)
    return step, (state, normal(8, *shape, scale=1), normal(9, *shape, scale=1))


def make_constrained(width=64, batch=32):
    """A step with constraints of its own, to a mesh that is not the plan's."""
    axes = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=axes)
    own = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data", "model"))

    def loss(w, x):
        return ((lax.with_sharding_constraint(jnp.tanh(x @ w), own) @ w) ** 2).mean()
    return sgd(loss), (normal(1, width, width), normal(2, batch, width, scale=1))


def make_chunked(width=32, vocabulary=64, batch=8, sequence=16, chunks=4):
    """A loss in chunks, each computed again: loops and barriers hand a weight through."""
    p = {"embedding": normal(1, vocabulary, width, scale=0.3), "out": normal(2, width, vocabulary, scale=0.2)}

    def loss(p, tokens):
        h = jnp.tanh(p["embedding"][tokens]).reshape(batch, chunks, -1, width).swapaxes(0, 1)
        wanted = jnp.roll(tokens, -1, 1).reshape(batch, chunks, -1).swapaxes(0, 1)

        def of_chunk(chunk):
            logits = chunk[0] @ p["out"]
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), chunk[1][..., None], -1).sum()
        return lax.map(jax.checkpoint(of_chunk), (h, wanted)).sum() / tokens.size
    return sgd(loss), (p, jax.random.randint(jax.random.key(3), (batch, sequence), 0, vocabulary))


def make_dilated(channels=16, batch=8, length=64):
    """Gated convolutions along a sequence: two look through the same window."""
    p = {f"{kind}{i}": normal(2 * i + (kind == "gate"), 2, channels, channels, scale=0.3)
         for kind in ("filter", "gate") for i in range(2)}

    def loss(p, x, y):
        def conv(x, w, dilation):
            return lax.conv_general_dilated(x, w, (1,), [(dilation, 0)], rhs_dilation=(dilation,),
                                            dimension_numbers=("NWC", "WIO", "NWC"))
        for i in range(2):
            x = x + jnp.tanh(conv(x, p[f"filter{i}"], 2**i)) * jax.nn.sigmoid(conv(x, p[f"gate{i}"], 2**i))
        return ((x - y) ** 2).mean()
    shape = (batch, length, channels)
    return sgd(loss), (p, normal(8, *shape, scale=1), normal(9, *shape, scale=1))


def make_placed(width=64, batch=32):
    """Arguments that lie on a mesh of the program's own already."""
    devices = numpy.array(jax.devices())
    mesh = jax.sharding.Mesh(devices.reshape(2, -1), ("mine", "too"))

    def put(leaf, *axes):
        return jax.device_put(leaf, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)))
    p = [put(normal(1, width, width), "too", "mine"), put(normal(2, width, width), None, "mine")]

    def loss(p, x, y):
        return ((jnp.tanh(x @ p[0]) @ p[1] - y) ** 2).mean()
    x = put(normal(3, batch, width, scale=1), "mine")
    return sgd(loss), (p, x, put(normal(4, batch, width, scale=1), ("too", "mine")))


def make_tied(width=32, inner=64, batch=16):
    """An autoencoder whose weights are used as they are and transposed, and multiplied by themselves."""
    p = [normal(1, width, inner, scale=0.2), normal(2, inner, 16, scale=0.2)]

    def loss(p, x):
        h = jnp.tanh(jnp.tanh(x @ p[0]) @ p[1])
        back = jnp.tanh(h @ p[1].T) @ p[0].T
        return ((back - x) ** 2).mean() + 1e-3 * sum((w.T @ w).std() for w in p)
    return sgd(loss), (p, normal(3, batch, width, scale=1))


def make_nested(width=64, batch=16):
    """Checkpoints inside of checkpoints: weights and activations go through several barriers."""
    p = [{"a": normal(i, width, width), "b": normal(i + 9, width, width)} for i in range(3)]

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def layer(q, x):
        return x + jnp.tanh(jax.nn.relu(x @ q["a"]) ** 2 @ q["b"])

    @jax.checkpoint
    def layers(all_of, x):
        for q in all_of:
            x = layer(q, x)
        return x

    def loss(p, x, y):
        return ((layers(p[:2], x) @ p[2]["a"] - y) ** 2).mean()
    return sgd(loss), (p, normal(30, batch, width, scale=1), normal(31, batch, width, scale=1))


def make_settled(width=32, batch=16):
    """A loop until nothing changes, whose body wants what is used behind it as well."""
    p = {"w": normal(1, width, width), "u": normal(2, width, width), "out": normal(3, width, width)}

    def loss(p, x, y):
        given = x @ p["u"]
        start = lax.stop_gradient((jnp.zeros_like(x), p["w"], given))
        found = lax.fori_loop(0, 6, lambda _, s: (jnp.tanh(s[0] @ s[1] + s[2]), s[1], s[2]), start)[0]
        return ((jnp.tanh(lax.stop_gradient(found) @ p["w"] + given) @ p["out"] - y) ** 2).mean()
    return sgd(loss), (p, normal(4, batch, width, scale=1), normal(5, batch, width, scale=1))


def make_orthogonal(width=32, inner=64, batch=16):
    """Momentum made orthogonal by products of matrices with themselves, transposed (Muon)."""
    p = [normal(1, width, inner), normal(2, inner, width)]

    def orthogonal(m):
        x = m / (jnp.sqrt((m * m).sum()) + 1e-7)
        x = x.T if x.shape[0] > x.shape[1] else x
        for _ in range(2):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return x.T if m.shape[0] > m.shape[1] else x

    def loss(p, x, y):
        return ((jnp.tanh(x @ p[0]) @ p[1] - y) ** 2).mean()

    def step(state, x, y):
        value, g = jax.value_and_grad(loss)(state["p"], x, y)
        m = jax.tree.map(lambda a, b: 0.9 * a + b, state["m"], g)
        return {"p": jax.tree.map(lambda w, a: w - 0.02 * orthogonal(a), state["p"], m), "m": m}, value
    state = {"p": p, "m": jax.tree.map(jnp.zeros_like, p)}
    return step, (state, normal(4, batch, width, scale=1), normal(5, batch, width, scale=1))


def make_instances(channels=16, batch=16, size=8):
    """Statistics over the positions of each image, both dimensions of which may be divided."""
    p = {"in": normal(1, channels, channels, scale=0.3), "out": normal(2, channels, channels, scale=0.3)}

    def loss(p, x, y):
        h = x @ p["in"]
        h = (h - h.mean((1, 2), keepdims=True)) * lax.rsqrt(h.var((1, 2), keepdims=True) + 1e-5)
        return ((jax.nn.relu(h) @ p["out"] - y) ** 2).mean()
    shape = (batch, size, size, channels)
    return sgd(loss), (p, normal(3, *shape, scale=1), normal(4, *shape, scale=1))


def make_pooled(channels=16, batch=16, size=16):
    """Pooling, whose gradient looks at the image through padding by nothing."""
    p = {"in": normal(1, 3, 3, 8, channels), "mid": normal(2, 3, 3, channels, 2 * channels),
         "out": normal(3, 2 * channels * (size // 4) ** 2, 16)}

    def layer(x, w):
        h = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p, x, y):
        h = layer(layer(x, p["in"]), p["mid"])
        return ((h.reshape(batch, -1) @ p["out"] - y) ** 2).mean()
    return sgd(loss), (p, normal(4, batch, size, size, 8, scale=1), normal(5, batch, 16, scale=1))


def make_recurrent(width=16, inner=32, states=8, batch=8, sequence=8):
    """A selective scan (Mamba) that computes its coefficients in each trip; what it makes of its decay and its
    bias alone, compilers compute before the loop."""
    p = {"in": normal(1, width, 2 * inner), "B": normal(2, inner, states), "C": normal(3, inner, states),
         "narrow": normal(4, inner, 8), "wide": normal(5, 8, inner), "bias": normal(6, inner),
         "A": normal(7, inner, states), "out": normal(8, inner, width)}

    def loss(p, x, y):
        u, gate = jnp.split(x @ p["in"], 2, -1)
        decay = -jnp.exp(p["A"])

        def trip(h, given):
            u, gate = given
            step = jax.nn.softplus(u @ p["narrow"] @ p["wide"] + p["bias"])
            h = h * jnp.exp(step[..., None] * decay) + (step * u)[..., None] * (u @ p["B"])[:, None]
            return h, jnp.einsum("ben,bn->be", h, u @ p["C"]) * jax.nn.silu(gate)
        start = jnp.zeros((batch, inner, states), x.dtype)
        _, h = lax.scan(trip, start, (jax.nn.silu(u).swapaxes(0, 1), gate.swapaxes(0, 1)))
        return ((x + h.swapaxes(0, 1) @ p["out"] - y) ** 2).mean()
    shape = (batch, sequence, width)
    return sgd(loss), (p, normal(9, *shape, scale=1), normal(10, *shape, scale=1))


def make_rematted(width=32, inner=64, batch=8, trips=4):
    """A loop whose checkpointed body makes something of weights alone, which is to be computed again in each trip."""
    p = {"a": normal(1, width, width), "b": normal(2, width, inner), "c": normal(3, inner, width),
         "g": normal(4, width), "out": normal(5, width, width)}

    def loss(p, x, y):
        @jax.checkpoint
        def trip(h, k):
            weight = jax.nn.softplus(p["b"]) * jnp.exp(p["g"])[:, None]
            return jnp.tanh(h @ weight) @ p["c"] + x @ p["a"] * k, None
        h, _ = lax.scan(trip, x, jnp.arange(trips, dtype=x.dtype))
        return ((h @ p["out"] - y) ** 2).mean()
    return sgd(loss), (p, normal(6, batch, width, scale=1), normal(7, batch, width, scale=1))
