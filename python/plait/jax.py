"""Shards a JAX training step as plait plans it. Pure Python: needs jax, and the program `plait`.

    program = trace(step, *arguments)              # HLO text in which every op has a tag
    plan = analyse(step, *arguments, cluster="1xA100-80GB:8", mesh="2x4")
    sharded = apply(step, plan, *arguments)        # a compiled function of the same arguments
    report = check(step, plan, *arguments)         # against one device, and collectives counted

A step is a function that jax.jit takes; its first argument is given up (donated) where it is among
the results. As a program, this file runs a plan:

    python -m plait.jax step.py:make --plan plan.json --devices cpu:8

Names that JAX does not promise to keep are used in internals.py only.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Run as a file, this folder would come first and hide the real jax.
if sys.path and pathlib.Path(sys.path[0]).resolve() == pathlib.Path(__file__).resolve().parent:
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from plait.compiled import KINDS, collectives  # noqa: E402
from plait.constraints import WrongPlan, add_constraints  # noqa: E402
from plait.internals import editable, hlo_text_of  # noqa: E402
from plait.runs import is_key, largest_difference, own_difference, run_steps  # noqa: E402
from plait.tags import CannotPlan, add_tags, with_own_tags  # noqa: E402


def _jax():
    try:
        import jax
    except ImportError as error:
        raise SystemExit("plait: JAX is not installed: ./dev setup_jax makes an environment with "
                         "it, or pip install jax") from error
    return jax


# ---------------------------------------------------------------- lowering and tags

def _refuse_explicit(leaves):
    """Types that name axes of a mesh decide where everything is: there is nothing left to plan."""
    jax = _jax()
    for leaf in leaves:
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        if mesh is not None and jax.sharding.AxisType.Explicit in getattr(mesh, "axis_types", ()):
            raise CannotPlan("the types of the arguments say where they are (a mesh with explicit axes): make it "
                             "with axis_types=(jax.sharding.AxisType.Auto,) for each axis, and set no mesh")


def _lower(step, arguments, donate, **shardings):
    jax = _jax()
    _refuse_explicit(jax.tree.leaves(arguments))
    jax.clear_caches()  # an edited module must not be found in the cache
    return jax.jit(step, donate_argnums=donate, keep_unused=True, **shardings).lower(*arguments)


def to_hlo_text(program):
    """HLO text of a StableHLO module (an MLIR object, its text, its bytes), of the bytes of a .pb file, of
    what jax.export made, and of what that was serialized to."""
    return hlo_text_of(program)


def _argument_names(arguments):
    jax = _jax()
    leaves, _ = jax.tree_util.tree_flatten_with_path(arguments)
    names = []
    for path, _ in leaves:
        words = [str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path]
        names.append("/".join(words))
    return names


def trace(step, *arguments, donate=(0,), path=None):
    """The program of a step as HLO text whose ops carry tags; written to `path` where given, with
    the names of the arguments beside it (path + ".names.json")."""
    lowered = _lower(step, arguments, donate)
    module = editable(lowered)
    add_tags(module)
    text = with_own_tags(to_hlo_text(module))
    _jax().clear_caches()  # the tagged module is not for running
    if path is not None:
        pathlib.Path(path).write_text(text)
        pathlib.Path(str(path) + ".names.json").write_text(json.dumps(_argument_names(arguments)))
    return text


# ---------------------------------------------------------------- plans

def plait_program():
    """The program: $PLAIT, else the one that was built here, else that on the path."""
    if "PLAIT" in os.environ:
        return os.environ["PLAIT"]
    built = pathlib.Path(__file__).resolve().parents[2] / "build/release/plait"
    return str(built) if built.exists() else "plait"


def analyse(step, *arguments, cluster, mesh=None, donate=(0,), flags=()):
    """Traces a step and searches its best plan: what `plait graph search` writes, as a dictionary."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "step.hlo"
        plan = pathlib.Path(folder) / "plan.json"
        trace(step, *arguments, donate=donate, path=program)
        command = [plait_program(), "graph", "search", str(program), "--cluster", cluster, "-o",
                   str(plan), *flags]
        if mesh is not None:
            command += ["--mesh", mesh if isinstance(mesh, str) else "x".join(map(str, mesh))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return json.loads(plan.read_text())


class TooFewDevices(RuntimeError):
    """The plan is for more devices than there are."""


def _mesh(plan):
    jax = _jax()
    import numpy
    sizes, names = plan["mesh"]["sizes"], plan["mesh"]["axes"]
    count = 1
    for size in sizes:
        count *= size
    devices = jax.devices()
    if len(devices) < count:
        raise TooFewDevices(f"the plan needs {count} devices, and JAX has {len(devices)}: --devices cpu:{count}, or in "
                            f"Python XLA_FLAGS=--xla_force_host_platform_device_count={count}, makes them of a CPU")
    return jax.sharding.Mesh(numpy.array(devices[:count]).reshape(sizes), names)


def _spec(dims):
    return _jax().sharding.PartitionSpec(
        *[None if not axes else axes[0] if len(axes) == 1 else tuple(axes) for axes in dims])


def _check_arguments(plan, arguments):
    jax = _jax()
    leaves = jax.tree.leaves(arguments)
    if len(leaves) != len(plan["arguments"]):
        raise WrongPlan(f"the plan is for another program: it has {len(plan['arguments'])} "
                        f"arguments, the step has {len(leaves)}")
    for leaf, entry in zip(leaves, plan["arguments"]):
        if _dims(leaf) != entry["dims"]:
            raise WrongPlan(f"the plan is for another program: argument {entry['name']} has "
                            f"dimensions {_dims(leaf)}, the plan says {entry['dims']}")


def _dims(leaf):
    """As the program has them: a key of random numbers is an array of words."""
    jax = _jax()
    if not is_key(leaf):
        return list(jax.numpy.shape(leaf))
    return list(jax.eval_shape(jax.random.key_data, leaf).shape)


def _anywhere(leaf):
    """An array wherever it is: the plan says where it goes."""
    jax = _jax()
    if not isinstance(leaf, jax.Array):
        return leaf
    weak = not is_key(leaf) and leaf.weak_type
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)


def compile_step(step, plan, arguments, donate=(0,)):
    """The compiled step under a plan (a jax.stages.Compiled)."""
    jax = _jax()
    _check_arguments(plan, arguments)
    mesh = _mesh(plan)

    def named(entries, tree):
        leaves, structure = jax.tree.flatten(tree)
        specs = [e["spec"][:len(jax.numpy.shape(leaf))] for e, leaf in zip(entries, leaves)]
        return jax.tree.unflatten(structure,
                                  [jax.sharding.NamedSharding(mesh, _spec(s)) for s in specs])

    arguments = jax.tree.map(_anywhere, arguments)
    results = jax.eval_shape(step, *arguments)
    lowered = _lower(step, arguments, donate, in_shardings=named(plan["arguments"], arguments),
                     out_shardings=named(plan["results"], results))
    add_constraints(editable(lowered), plan)
    return lowered.compile()


def apply(step, plan, *arguments, donate=(0,)):
    """The sharded step: takes and gives what the step does, arguments placed as the plan says."""
    jax = _jax()
    compiled = compile_step(step, plan, arguments, donate)

    def sharded(*given):
        placed = jax.device_put(given, compiled.input_shardings[0])
        return compiled(*placed)

    return sharded


# ---------------------------------------------------------------- checking

def _planned(plan, platform):
    """Bytes by kind. CPUs send floats of 16 bits as floats of 32."""
    planned = dict.fromkeys(KINDS, 0.0)
    for move in plan["movements"]:
        widened = platform == "cpu" and move["type"].startswith(("bf16", "f16"))
        planned[move["kind"]] += move["bytes_sent"] * move["times"] * (2 if widened else 1)
    return planned


def _compared(planned, counted):
    """(planned, counted) by kind. A reduce-scatter counts as the all-reduce that CPUs do instead."""
    def kinds(sent):
        return {"reduce": sent["all-reduce"] + 2 * sent["reduce-scatter"],
                **{kind: sent[kind] for kind in ("all-gather", "all-to-all", "collective-permute")}}
    ours, theirs = kinds(planned), kinds(counted)
    return {kind: (ours[kind], theirs[kind]) for kind in ours}


def check(step, plan, *arguments, steps=3, donate=(0,), expected=None):
    """Runs the step on one device and under the plan. Gives the largest difference and the bytes of
    collectives, planned and counted in the compiled program. `expected`: what run_steps(jax.jit(step),
    arguments, steps) gave, where it is known already."""
    jax = _jax()
    compiled = compile_step(step, plan, arguments, donate)
    ours = run_steps(compiled, arguments, steps,
                     lambda given: jax.device_put(given, compiled.input_shardings[0]))
    if expected is None:
        expected = run_steps(jax.jit(step), arguments, steps)
    devices = 1
    for size in plan["mesh"]["sizes"]:
        devices *= size
    counted = collectives(compiled.as_text(), devices)
    planned = _planned(plan, jax.devices()[0].platform)
    return {"difference": largest_difference(ours, expected), "planned": planned, "counted": counted,
            "compared": _compared(planned, counted)}


# ---------------------------------------------------------------- as a program

def load_step(text):
    """"step.py:make" -> what make() gives: (step, arguments)."""
    path, _, name = text.partition(":")
    file = pathlib.Path(path)
    if not file.exists():
        raise SystemExit(f"plait: {path}: there is no such file")
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name or "make", None)
    if function is None:
        raise SystemExit(f"plait: {path}: there is no function {name or 'make'}")
    return function


class _Named:
    """Shardings by the axes of each dimension, and how long a step of nothing takes."""

    def __init__(self, mesh):
        import jax
        from plait.measure import fastest
        self.mesh = _mesh({"mesh": mesh})
        self.sizes = dict(zip(mesh["axes"], mesh["sizes"]))
        nothing = jax.device_put(jax.numpy.ones(8), self([]))
        self.idle = fastest(jax.jit(lambda x: x + 1, in_shardings=self([])), [nothing])

    def __call__(self, dims):
        return _jax().sharding.NamedSharding(self.mesh, _spec(dims))


def _measure(options):
    from plait.measure import measure
    request = json.loads(pathlib.Path(options.measure).read_text())
    named = _Named(request["mesh"])
    return measure(options.step, request, options.output, named, options.budget)


def _convert(path, output):
    """Writes the HLO text of a file of another form; gives the exit status."""
    try:
        pathlib.Path(output).write_text(to_hlo_text(pathlib.Path(path).read_bytes()))
    except OSError as error:
        print(f"plait: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except (ValueError, RuntimeError) as error:  # the compiler says what is wrong in many lines
        print(f"plait: {path}: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return 2
    return 0


def main():
    parser = argparse.ArgumentParser(prog="python -m plait.jax")
    parser.add_argument("step", help="FILE.py:FUNCTION, which gives (step, arguments); with --trace also a "
                        "file of StableHLO, of HLO as protobuf, or of jax.export")
    parser.add_argument("--plan", help="what plait graph search wrote")
    parser.add_argument("--trace", help="only write the program as HLO text here")
    parser.add_argument("--devices", default="", help="cpu:8 makes eight devices of this machine")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--x64", action="store_true", help="compute in double precision")
    parser.add_argument("--sizes", default="{}", help="JSON of arguments of the function")
    parser.add_argument("--measure", help="time what this request names; the program is HLO text")
    parser.add_argument("--output", help="where --measure keeps its times")
    parser.add_argument("--budget", type=float, default=600, help="seconds of --measure")
    options = parser.parse_args()
    if options.devices:
        platform, _, count = options.devices.partition(":")
        os.environ["JAX_PLATFORMS"] = platform
        if platform == "cpu" and count:
            os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                                       f" --xla_force_host_platform_device_count={int(count)}")
    os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")  # the last line is the error's
    jax = _jax()
    if options.x64:
        jax.config.update("jax_enable_x64", True)
    if options.measure:
        print(json.dumps(_measure(options)))
        return 0
    if options.trace and not options.step.partition(":")[0].endswith(".py"):
        return _convert(options.step, options.trace)
    step, arguments = load_step(options.step)(**json.loads(options.sizes))
    if options.trace:
        try:
            trace(step, *arguments, path=options.trace)
        except CannotPlan as error:
            print(f"plait: {options.step}: {error}", file=sys.stderr)
            return 2
        return 0
    if not options.plan:
        raise SystemExit("plait: --plan is missing: plait graph search writes one")
    plan = json.loads(pathlib.Path(options.plan).read_text())
    try:
        expected = run_steps(jax.jit(step), arguments, options.steps)
        report = check(step, plan, *arguments, steps=options.steps, expected=expected)
        report["own_difference"] = own_difference(step, arguments, options.steps, expected)
    except WrongPlan as error:
        print(f"plait: {options.plan}: {error}", file=sys.stderr)
        return 2
    except (CannotPlan, TooFewDevices) as error:
        print(f"plait: {options.step}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
