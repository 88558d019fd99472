#!/usr/bin/env python3
"""Plans of plait graph, executed under JAX on eight CPU devices: the planned step gives what one
device gives, and its compiled program sends the bytes that the plan says. Exit 77 = skipped."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
SKIPPED = 77
STEPS = {
    "my_step.py:make": {"batch": 1024},
    "gpt_step.py:make": {"layers": 1},
    "bert_step.py:make": {"layers": 1},
    "llama_step.py:make": {"layers": 1},
    "llama_step.py:make_scanned": {"layers": 2},
    "moe_step.py:make": {"layers": 1},
    "wide_resnet_step.py:make": {"blocks": 1, "size": 8},
}
# Of tests/graph_steps.py: fewer random plans, under their own optimizer only.
KINDS = ("routed", "written", "grouped", "accumulated", "constrained", "chunked", "dilated", "placed",
         "tied", "nested", "settled", "orthogonal", "instances",
         "pooled", "recurrent", "rematted")
MESHES = ("8", "2x4", "2x2x2")
# XLA need not optimise: what a device sends is decided before, and compiling is most of the time.
XLA_FLAGS = ("--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
             "--xla_llvm_disable_expensive_passes=true --xla_cpu_multi_thread_eigen=false")


def jax_python():
    named = os.environ.get("PLAIT_JAX_PYTHON", str(SOURCE / "build/jax/bin/python"))
    try:
        subprocess.run([named, "-c", "import jax"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return named


class Step:
    """A step of examples/graph, traced, and what one device makes of it."""

    def __init__(self, name, sizes, program, folder):
        import jax
        import plait.jax as runner
        self.runner, self.program, self.folder = runner, program, pathlib.Path(folder)
        place = SOURCE / ("examples/graph" if name in STEPS else "tests")
        self.step, self.arguments = runner.load_step(str(place / name))(**sizes)
        runner.trace(self.step, *self.arguments, path=self.folder / "step.hlo")
        self.expected = runner.run_steps(jax.jit(self.step), self.arguments, 3)

    def plan(self, mesh, seed):
        path = self.folder / "plan.json"
        random = [] if seed is None else ["--random", str(seed)]
        done = subprocess.run(
            [self.program, "graph", "search", self.folder / "step.hlo", "--cluster", "1xA100-80GB:8",
             "--mesh", mesh, "-o", path, *random], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return json.loads(path.read_text())

    def check(self, mesh, seed):
        return self.runner.check(self.step, self.plan(mesh, seed), *self.arguments,
                                 expected=self.expected)


def failures_of(report, most):
    """What does not hold, in words."""
    failures = []
    if not report["difference"] <= most:
        failures.append(f"differs by {report['difference']:.1e} from one device")
    for kind, (planned, counted) in report["compared"].items():
        if abs(planned - counted) > 0.05 * max(planned, counted):
            failures.append(f"{kind}: {planned:.0f} bytes planned, {counted:.0f} compiled")
    return failures


def refused_plans(step):
    """Failures to refuse plans of other programs, each with its message."""
    failures = []

    def refused(plan, message):
        try:
            step.runner.compile_step(step.step, plan, step.arguments)
            failures.append(f"a plan is taken: {message}")
        except step.runner.WrongPlan as error:
            if str(error) != message:
                failures.append(f"'{error}' is not '{message}'")

    plan = step.plan("8", None)
    values = [entry for entry in plan["values"] if entry["op"] == "dot"]
    changed = {**values[0]}

    def with_value(**other):
        return {**plan, "values": [{**changed, **other}]}

    other = "the plan is for another program: "
    refused(with_value(tag="main:9999"), other + "it has dot at main:9999, the step has nothing")
    refused(with_value(op="add"), other + f"it has add at {changed['tag']}, the step has stablehlo.dot_general")
    kind = "x".join(map(str, changed["dims"])) + "xf32"
    refused(with_value(dims=[3, 5]), other + f"{changed['tag']} is {kind}, the plan says [3, 5]")
    count = len(plan["arguments"])
    refused({**plan, "arguments": plan["arguments"][1:]},
            other + f"it has {count - 1} arguments, the step has {count}")
    first = plan["arguments"][0]
    refused({**plan, "arguments": [{**first, "dims": [7]}, *plan["arguments"][1:]]},
            other + f"argument {first['name']} has dimensions {first['dims']}, the plan says [7]")
    return failures


def written_again(options, step):
    """Failures of jaxlib to read the step's program as plait writes it, with shardings and whole."""
    from plait.internals import stablehlo_of
    path = step.folder / "annotated.hlo"
    subprocess.run([options.program, "graph", "search", step.folder / "step.hlo", "--cluster", "1xA100-80GB:8",
                    "--mesh", "2x4", "--annotated", path], check=True, capture_output=True)
    ours, theirs = (len(text.splitlines()) for text in ((step.folder / "step.hlo").read_text(), path.read_text()))
    try:
        stablehlo_of(path.read_text())
    except Exception as error:
        return [f"jaxlib does not read what was written: {str(error).splitlines()[0]}"]
    return [] if ours == theirs else [f"{theirs} lines were written of {ours}"]


def converted():
    """Failures to turn what JAX writes into HLO text: StableHLO as text and bytes, HLO as protobuf."""
    import jax
    from plait.jax import to_hlo_text
    lowered = jax.jit(lambda x: (x @ x).sum()).lower(jax.numpy.ones((4, 4)))
    proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    dumped = b"\n" + bytes([len(proto) % 128 + 128, len(proto) // 128]) + proto  # an HloProto that holds it
    forms = {"StableHLO": lowered.compiler_ir("stablehlo"), "its text": lowered.as_text(),
             "text as bytes": lowered.as_text().encode(), "protobuf": proto, "dump": dumped,
             "exported": jax.export.export(jax.jit(lambda x: (x @ x).sum()))(jax.numpy.ones((4, 4)))}
    failures = [name for name, form in forms.items() if " dot(" not in to_hlo_text(form)]
    try:
        to_hlo_text(b"no program")
        failures.append("bytes of nothing")
    except ValueError:
        pass
    return [f"not converted: {name}" for name in failures] + refused_conversions()


def refused_conversions():
    """Failures to say in one line, with status 2, what is wrong with a file that has no program."""
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for name, content, message in (
                ("none.mlir", None, "No such file or directory"),
                ("nothing.pb", "no program", "these bytes are not StableHLO, HLO or an exported function"),
                ("broken.mlir", "module { func.func @main() { return %b } }", "UNKNOWN: -:1:39: error: expected ':'")):
            path = pathlib.Path(folder) / name
            if content is not None:
                path.write_text(content)
            done = subprocess.run([sys.executable, SOURCE / "python/plait/jax.py", path, "--trace", f"{folder}/to.hlo"],
                                  capture_output=True, text=True)
            if done.returncode != 2 or done.stderr != f"plait: {path}: {message}\n":
                failures.append(f"{name}: status {done.returncode}, {done.stderr}")
    return failures


def child(options):
    """All plans of one step; a line of JSON for each."""
    sys.path.insert(0, str(SOURCE / "python"))
    import jax
    sizes = STEPS.get(options.child, {})
    wide = options.adam
    if wide:
        jax.config.update("jax_enable_x64", True)
        sizes = {**sizes, "optimizer": "adam"}
    with tempfile.TemporaryDirectory() as folder:
        step = Step(options.child, sizes, options.program, folder)
        tries = [(mesh, None) for mesh in options.meshes.split(",")]
        few = options.child not in STEPS
        seeds = options.random // 5 if few else options.random
        tries += [(MESHES[seed % len(MESHES)], seed) for seed in range(seeds)]
        for mesh, seed in tries:
            failures = failures_of(step.check(mesh, seed), 1e-9 if wide else 1e-5)
            print(json.dumps({"mesh": mesh, "seed": seed, "failures": failures}), flush=True)
        if not wide:
            print(json.dumps({"mesh": "2x4", "seed": "written", "failures": written_again(options, step)}))
        if options.child == next(iter(STEPS)) and not wide:
            print(json.dumps({"mesh": "8", "seed": "of another program", "failures": refused_plans(step)}))
            print(json.dumps({"mesh": "8", "seed": "in other forms", "failures": converted()}))
    return 0


def run_child(python, options, step, adam):
    """Failures of a step; prints them."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": XLA_FLAGS}
    words = [python, __file__, "--program", options.program, "--child", step, "--random",
             str(options.random), "--meshes", options.meshes, *(["--adam"] if adam else [])]
    kind = "Adam fp64" if adam else "SGD fp32"
    failed, seen = 0, 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout:
            found = json.loads(line)
            seen += 1
            failed += bool(found["failures"])
            seed = found["seed"]
            plan = "best" if seed is None else seed if isinstance(seed, str) else f"random {seed}"
            verdict = "; ".join(found["failures"])
            print(f"{'FAILED' if verdict else 'ok'} {step} {kind} mesh {found['mesh']} {plan} {verdict}",
                  flush=True)
    if process.returncode != 0:
        print(f"FAILED {step} {kind}: ended after {seen} plans with status {process.returncode}")
        failed += 1
    return failed


def run_as_users_do(options):
    """Failures of plait graph search and run, from a file to the report: of a step that is traced, and of a
    program that was traced before."""
    traced = SOURCE / "examples/graph/my_step.py"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "step.hlo"
        words = [jax_python(), SOURCE / "python/plait/jax.py", f"{traced}:make", "--trace", program]
        subprocess.run(words, check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
        failed = search_and_run(options, program, f"{traced}:make")
    folder = SOURCE / "examples/graph"
    return failed + search_and_run(options, folder / "hlo/gpt.hlo", f"{folder}/gpt_step.py:make")


def search_and_run(options, program, step):
    """Failures; prints them."""
    with tempfile.TemporaryDirectory() as folder:
        plait = [options.program, "graph"]
        subprocess.run([*plait, "search", program, "--cluster", "1xA100-80GB:8", "--mesh", "2x4",
                        "-o", f"{folder}/plan.json"], check=True, capture_output=True)
        done = subprocess.run([*plait, "run", step, "--plan", f"{folder}/plan.json", "--devices", "cpu:8",
                               "--json"], capture_output=True, text=True)
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    # Rounding alone moves the results as far as the plan does.
    good = report and 0 < report["own_difference"] < 1e-5 and not failures_of(report, 1e-5)
    print(f"{'ok' if good else 'FAILED'} plait graph run {pathlib.Path(program).name} {done.stderr.strip()}",
          flush=True)
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--random", type=int, default=20, help="random plans a program")
    parser.add_argument("--meshes", default=",".join(MESHES))
    kinds = [f"graph_steps.py:make_{kind}" for kind in KINDS]
    parser.add_argument("--steps", default=",".join([*STEPS, *kinds]))
    parser.add_argument("--optimizers", default="sgd,adam")
    parser.add_argument("--at-once", type=int, default=2, help="programs that are checked at the same time")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--adam", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    python = jax_python()
    if python is None:
        print("skipped: there is no Python with JAX; ./dev setup_jax makes one")
        return SKIPPED
    failed = run_as_users_do(options)
    tasks = [(step, optimizer == "adam") for step in options.steps.split(",")
             for optimizer in (options.optimizers.split(",") if step in STEPS else ["sgd"])]
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        failed += sum(pool.map(lambda task: run_child(python, options, *task), tasks))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{failed} failed; {used.ru_utime + used.ru_stime:.0f} s of CPU time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
