// The part of the module for JAX that no plan changes.
namespace plait {

extern const char* const kJaxModule;
const char* const kJaxModule = R"PY(

import math
import os
import re

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# Parameters by their path, the first expression that matches: how tensor and expert parallelism cut
# each dimension. Weights are stored as (inputs, outputs), those of experts as (experts, inputs, outputs).
PARAMETERS = [
    (r"embedding/table$", ("tensor", None)),
    (r"attention/(query|key|value)/kernel$", (None, "tensor")),
    (r"attention/output/kernel$", ("tensor", None)),
    (r"experts/(gate|up)/kernel$", ("expert", None, "tensor")),
    (r"experts/down/kernel$", ("expert", "tensor", None)),
    (r"(mlp|shared)/(gate|up)/kernel$", (None, "tensor")),
    (r"(mlp|shared)/down/kernel$", ("tensor", None)),
    (r"attention/(query|key|value)/bias$", ("tensor",)),
    (r"experts/(gate|up)/bias$", ("expert", "tensor")),
    (r"experts/down/bias$", ("expert", None)),
    (r"(mlp|shared)/(gate|up)/bias$", ("tensor",)),
    (r"head/kernel$", (None, "tensor")),
    (r"(router/kernel|norm/(scale|shift)|bias|positions)$", ()),
]


def _spec(path, shape, over_copies):
    """`over_copies`: the devices that have copies of the parameter cut a dimension that is left whole."""
    for pattern, cuts in PARAMETERS:
        if re.search(pattern, path):
            break
    else:
        raise KeyError(f"no rule of PARAMETERS matches '{path}'")
    cuts = list(cuts) + [None] * (len(shape) - len(cuts))
    axes = tuple(axis for axis in ("data", "expert", "context") if axis not in cuts)
    whole = [i for i, size in enumerate(shape)
             if cuts[i] is None and size % math.prod(MESH[axis] for axis in axes) == 0]
    if over_copies and whole:
        cuts[whole[0]] = axes
    return PartitionSpec(*cuts)


def parameter_spec(path, shape):
    """How the parameter of this path is cut; KeyError for a path that no expression matches."""
    return _spec(path, shape, ZERO == 3)


def optimizer_spec(path, shape):
    """How the optimizer's states of the parameter are cut."""
    return _spec(path, shape, ZERO > 0)


def batch_spec():
    """Of tokens, (samples, positions)."""
    return PartitionSpec(("data", "expert"), "context")


def activation_spec():
    """Between layers, (samples, positions, features)."""
    positions = ("context", "tensor") if SEQUENCE_PARALLEL else "context"
    return PartitionSpec(("data", "expert"), positions, None)


def make_mesh(devices=None):
    devices = jax.devices() if devices is None else devices
    sizes = tuple(MESH.values())
    wanted = math.prod(sizes)
    if len(devices) != wanted:
        raise ValueError(f"the plan is for {wanted} devices, there are {len(devices)}")
    import numpy
    return Mesh(numpy.array(devices).reshape(sizes), tuple(MESH))


def paths_of(tree):
    """The tree with the path of each leaf in its place."""
    def name(path, _):
        return "/".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path)
    return jax.tree_util.tree_map_with_path(name, tree)


def shardings(mesh, tree):
    """NamedShardings of a tree of parameters."""
    def one(path, leaf):
        return NamedSharding(mesh, parameter_spec(path, leaf.shape))
    return jax.tree.map(one, paths_of(tree), tree)


def optimizer_shardings(mesh, tree):
    kind = "pinned_host" if OFFLOAD_OPTIMIZER else None
    def one(path, leaf):
        return NamedSharding(mesh, optimizer_spec(path, leaf.shape), memory_kind=kind)
    return jax.tree.map(one, paths_of(tree), tree)


def recomputed(layer):
    """The function of a layer, which keeps for the backward pass what the plan says."""
    if RECOMPUTE == "full":
        return jax.checkpoint(layer)
    if RECOMPUTE == "selective":
        return jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    return layer


def parameter_shapes(network=None):
    """Shapes of the network's parameters by the names that PARAMETERS has."""
    n = NETWORK if network is None else network
    h, d = n["hidden"], n["head_dim"]
    ups = ("gate", "up") if n["gated"] else ("up",)
    attention = {
        "attention": {"query": {"kernel": (h, n["heads"] * d)}, "key": {"kernel": (h, n["kv_heads"] * d)},
                      "value": {"kernel": (h, n["kv_heads"] * d)},
                      "output": {"kernel": (n["heads"] * d, h)}},
        "attention_norm": {"scale": (h,)}, "mlp_norm": {"scale": (h,)},
    }
    def plain(f):
        return {up: {"kernel": (h, f)} for up in ups} | {"down": {"kernel": (f, h)}}
    def layer(number):
        if not n["experts"] or number in n["dense_layers"]:
            return attention | {"mlp": plain(n["ffn"])}
        e, f = n["experts"], n["expert_ffn"]
        experts = {up: {"kernel": (e, h, f)} for up in ups} | {"down": {"kernel": (e, f, h)}}
        shared = {"shared": plain(n["shared_ffn"])} if n["shared_ffn"] else {}
        return attention | {"experts": experts, "router": {"kernel": (h, e)}} | shared
    tree = {"embedding": {"table": (n["vocabulary"], h)}, "final_norm": {"scale": (h,)},
            "layers": [layer(number) for number in range(n["layers"])]}
    if not n["tied"]:
        tree["head"] = {"kernel": (h, n["vocabulary"])}
    return tree


def small_network():
    """A network of the same kind whose sizes the mesh divides, for a trial."""
    unit = math.prod(MESH.values())
    kv_heads = MESH["tensor"]
    heads = kv_heads * max(1, min(4, NETWORK["heads"] // NETWORK["kv_heads"]))
    experts = 2 * MESH["expert"] if NETWORK["experts"] else 0
    first = NETWORK["layers"] > 0 and 0 in NETWORK["dense_layers"]
    return NETWORK | dict(layers=2, dense_layers=[0] if first else [],
                          shared_ffn=16 * unit if NETWORK["shared_ffn"] else 0, hidden=heads * 8 * unit, heads=heads, kv_heads=kv_heads,
                          head_dim=8 * unit, ffn=16 * unit, vocabulary=32 * unit, experts=experts,
                          expert_ffn=16 * unit, sequence=4 * unit)


def forward(params, tokens, mesh, network):
    """The logits; experts are all computed and weighed, as a trial needs no speed."""
    x = params["embedding"]["table"][tokens].astype(DTYPE)
    def cut(x):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, activation_spec()))
    def rms(x, norm):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * norm["scale"]
    def heads(x, count):
        return x.reshape(*x.shape[:2], count, network["head_dim"])
    def feed_forward(x, part):
        up = jnp.einsum("bsh,...hf->bs...f", x, part["up"]["kernel"])
        up = jax.nn.silu(jnp.einsum("bsh,...hf->bs...f", x, part["gate"]["kernel"])) * up \
            if "gate" in part else jax.nn.gelu(up)
        return jnp.einsum("bs...f,...fh->bs...h", up, part["down"]["kernel"])
    @recomputed
    def block(x, p):
        y, a = rms(x, p["attention_norm"]), p["attention"]
        q, k, v = (heads(y @ a[name]["kernel"], count) for name, count in (
            ("query", network["heads"]), ("key", network["kv_heads"]), ("value", network["kv_heads"])))
        x = cut(x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(y.shape[0], y.shape[1], -1)
                @ a["output"]["kernel"])
        y = rms(x, p["mlp_norm"])
        if "experts" in p:
            weights = jax.nn.softmax(y @ p["router"]["kernel"])
            x = x + feed_forward(y, p["shared"]) if "shared" in p else x
            return cut(x + jnp.einsum("bseh,bse->bsh", feed_forward(y, p["experts"]), weights))
        return cut(x + feed_forward(y, p["mlp"]))
    for p in params["layers"]:
        x = block(x, jax.tree.map(lambda leaf: leaf.astype(DTYPE), p))
    x = rms(x, params["final_norm"])
    table = params["head"]["kernel"] if "head" in params else params["embedding"]["table"].T
    return x @ table.astype(DTYPE)


def trial():
    """Shards a small network, takes a step with it, and says how its parameters lie."""
    network, mesh = small_network(), make_mesh()
    shapes = parameter_shapes(network)
    leaf = lambda x: isinstance(x, tuple)
    key = jax.random.key(0)
    params = jax.tree.map(lambda shape: 0.02 * jax.random.normal(key, shape), shapes, is_leaf=leaf)
    params = jax.device_put(params, shardings(mesh, params))
    samples = MESH["data"] * MESH["expert"]
    tokens = jnp.zeros((samples, network["sequence"]), jnp.int32)
    tokens = jax.device_put(tokens, NamedSharding(mesh, batch_spec()))
    def loss(params):
        logits = forward(params, tokens, mesh, network).astype(jnp.float32)
        return -jnp.mean(jax.nn.log_softmax(logits)[..., 0])
    with jax.default_matmul_precision(MATMUL_PRECISION):
        value, grads = jax.jit(jax.value_and_grad(loss), out_shardings=(None, shardings(mesh, params)))(params)
    states = jax.device_put(jax.tree.map(jnp.zeros_like, params), optimizer_shardings(mesh, params)) \
        if not OFFLOAD_OPTIMIZER else None
    for path, param in zip(jax.tree.leaves(paths_of(params)), jax.tree.leaves(params)):
        print(f"{path} {param.shape} as {param.addressable_shards[0].data.shape} {param.sharding.spec}")
    print(f"loss {float(value):.4f} on {mesh.size} devices")
    return params, grads, states


if __name__ == "__main__":
    if int(os.environ.get("NNODES", "1")) > 1:
        jax.distributed.initialize(
            f'{os.environ["MASTER_ADDR"]}:{os.environ["MASTER_PORT"]}',
            int(os.environ["NNODES"]), int(os.environ["NODE_RANK"]))
    trial()
)PY";

}  // namespace plait
