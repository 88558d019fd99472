"""What the Python package shows to people and type checkers; tests/python_cases.py runs them."""
import contextlib
import html.parser
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import plait

from python_problems import CONFIG, SMALL, SOURCE


def test_notebooks_show_tables_and_pictures():
    plan = plait.plan(**SMALL, pp=2)
    shown = [plan, plan.search, plait.estimate(plan), plait.explain(plan, time_limit=1), plait.check(plan),
             plait.diff(plan, plait.plan(**SMALL)), plait.models(), plait.devices()]
    for value in shown:
        page = value._repr_html_()
        assert page.count("<table>") == page.count("</table>") <= 1 and "<script" not in page
        parser = html.parser.HTMLParser()
        parser.feed(page)
        parser.close()
    assert "<svg" in plan._repr_html_() and plan.timeline().count("stage ") == len(plan.stages)
    assert json.loads(plan.trace())["traceEvents"]
    named = plait.plan(model={**CONFIG, "_name_or_path": "<b>"}, cluster="T4:1", global_batch=2)
    assert "<b>" not in named._repr_html_()


def test_tables_become_data_frames():
    if importlib.util.find_spec("pandas") is None:
        print("  without pandas: to_pandas() is not tried")
        return
    plan = plait.plan(**SMALL, pp=2)
    assert list(plan.to_pandas()["stage"]) == [1, 2]
    assert len(plan.search.to_pandas()) == len(plan.search.plans)
    assert len(plait.models().to_pandas()) == len(plait.models())


def test_docstrings_are_the_reference():
    for name in plait.__all__:
        value = getattr(plait, name)
        assert value.__doc__, name
    assert "tensor_model_parallel_size" in plait.plan.__doc__ and "--" not in plait.plan.__doc__.replace(" -- ", "")


def test_types_pass_mypy_in_strict_mode():
    if importlib.util.find_spec("mypy") is None:
        print("  without mypy: types are not checked")
        return
    user = """
from __future__ import annotations
from typing import Optional
import plait
best: plait.Plan = plait.plan(model="gpt2", cluster="T4:4", global_batch=8, tp=2, recompute="full",
                              tensor_model_parallel_size=2, sp=True, stages=[13, 12], price={"T4": 0.5})
seconds: float = best.stages[0].time.forward_s
gap: Optional[float] = best.search.gap if best.search else None
rows = [(row.planner, row.step_s) for row in plait.compare(model={}, cluster={}, global_batch="4Mtokens").planners]
mixes: list[plait.Mix] = plait.pareto(model="gpt2", instances=["a:1"], global_batch=8).front
ok: bool = bool(plait.check("plan.json", memory_limit="40GiB")) and plait.replan(best, lost=["a"]).kept
names: list[str] = [model.name for model in plait.models()]
priced: plait.ConfiguredEstimate = plait.estimate_from("deepspeed", {}, cluster={}, model="gpt2", micro_batch=4, precision="bf16")
faster: Optional[plait.Plan] = priced.faster
files: dict[str, str] = plait.export(best, to="megatron", output="run", launcher="slurm", nearest=True).files
"""
    wrong = ["import plait\nplait.plan(model='gpt2', cluster='T4:4', tpp=2)\n",
             "import plait\nplait.plan(model='gpt2', cluster='T4:4', sp='yes')\n",
             "import plait\nplait.plan('gpt2', 'T4:4').stages[0].nothing\n",
             "import plait\nplait.export('plan.json', 'jax', nearestt=True)\n"]
    with tempfile.TemporaryDirectory() as folder:
        def checked(code):
            path = pathlib.Path(folder) / "user.py"
            path.write_text(code)
            return subprocess.run([sys.executable, "-m", "mypy", "--strict", str(path)], cwd=folder,
                                  capture_output=True, text=True, check=False)
        good = checked(user)
        assert good.returncode == 0, good.stdout + good.stderr
        for code in wrong:
            assert checked(code).returncode == 1, code
        package = subprocess.run([sys.executable, "-m", "mypy", "--strict", "-p", "plait._calls", "-p", "plait._plan",
                                  "-p", "plait._answer", "-p", "plait._saved_answers", "-p",
                                  "plait._search_answers", "-p", "plait._known", "-p", "plait._words"], cwd=folder,
                                 capture_output=True, text=True, check=False)
        assert package.returncode == 0, package.stdout


def test_types_of_arguments_are_those_of_the_flags():
    done = subprocess.run([sys.executable, SOURCE / "scripts/python_options.py",
                           *(["--write"] if os.environ.get("PLAIT_UPDATE_GOLDEN") == "1" else [])],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_python_blocks_of_the_documents_run():
    count = 0
    for document in (SOURCE / "README.md", SOURCE / "docs/python.md"):
        blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.M | re.S)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(SOURCE / "examples", pathlib.Path(folder) / "examples")
            here, names = os.getcwd(), {"__name__": document.name}
            os.chdir(folder)
            try:
                for block in blocks:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(block, document.name, "exec"), names)  # pylint: disable=exec-used
                    count += 1
            finally:
                os.chdir(here)
    assert count >= 2, count


def test_sources_without_the_compiled_part_say_so():
    code = "import plait.compiled, plait\ntry:\n  plait.plan\nexcept ImportError as e:\n  assert 'pip install' in str(e)\n"
    done = subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(SOURCE / "python")},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
