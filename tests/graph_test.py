#!/usr/bin/env python3
"""plait graph, as users run it: analyze, search, enumerate, and what it says about bad input."""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]
HLO = SOURCE / "examples/graph/hlo"
sys.path.insert(0, str(SOURCE / "python"))  # the module needs no JAX
from plait.tags import with_own_tags  # noqa: E402
PROGRAM = None


def plait(*words):
    return subprocess.run([PROGRAM, "graph", *map(str, words)], capture_output=True, text=True,
                          timeout=120)


class Graph(unittest.TestCase):
    def good(self, *words):
        done = plait(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, text, message, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.hlo"
            path.write_text(text)
            done = plait("analyze", path, *words)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(message, done.stderr)
            self.assertIn("step.hlo:", done.stderr)

    def test_analysis_names_blocks_segments_and_loops(self):
        found = json.loads(self.good("analyze", HLO / "llama_scanned.hlo", "--json"))
        self.assertEqual([s["space"] for s in found["segments"]], [[3], [3, 3, 3, 3], [3]])
        self.assertEqual(found["segments"][1]["trips"], 3)
        self.assertIn("loss", found)
        self.assertIn("[3,3,3,3]", self.good("analyze", HLO / "bert.hlo"))
        self.assertEqual([b["name"] for b in found["blocks"]][1:4],
                         ["0/layers/wk, wq, wv", "0/layers/wo", "0/layers/gate, up"])
        self.assertEqual(found["blocks"][1]["strategies"], ["heads", "rows", "inner"])

    def test_search_writes_a_plan_and_an_annotated_program(self):
        with tempfile.TemporaryDirectory() as folder:
            plan, program = pathlib.Path(folder) / "plan.json", pathlib.Path(folder) / "a.hlo"
            out = self.good("search", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--mesh", "2x4",
                            "-o", plan, "--annotated", program)
            self.assertIn("0/layers/0/qkv", out)
            written = json.loads(plan.read_text())
            self.assertEqual(written["mesh"]["sizes"], [2, 4])
            self.assertLessEqual(written["bound_s"], written["time_s"] * (1 + 1e-9))
            self.assertTrue(written["values"])
            self.assertIn("sharding={devices=", program.read_text())
            self.good("analyze", program)

    def test_without_a_mesh_all_of_one_to_three_axes_are_tried(self):
        def best(*mesh):
            return json.loads(self.good("search", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--json", *mesh))
        given = [best("--mesh", mesh) for mesh in ("8", "2x4", "4x2", "2x2x2")]
        self.assertEqual(best()["time_s"], min(plan["time_s"] for plan in given))
        for plan in given:
            self.assertGreaterEqual(plan["bound_s"], plan["time_s"] * (1 - 1e-9))  # each is the best

    def test_the_answer_is_the_same_for_any_number_of_threads(self):
        flags = ("search", HLO / "moe.hlo", "--cluster", "1xA100-80GB:8", "--json", "--threads")
        self.assertEqual(self.good(*flags, 1), self.good(*flags, 4))

    def test_products_are_listed_for_plait_profile_and_its_times_are_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ops.json"
            self.good("profile", HLO / "gpt.hlo", "--cluster", "1xH200:8", "--mesh", "8", "--ops", path)
            ops = json.loads(path.read_text())["ops"]
            # 256 rows of 64 features, heads of 3 x 8 columns over 8 devices.
            self.assertIn({"op": "matmul", "dtype": "fp32", "rows": 256, "inner": 64, "columns": 24}, ops)
            second = dict.fromkeys(("forward_s", "backward_s", "weight_gradient_s"), 1)
            path.write_text(json.dumps({"plait_profile": 1, "compute": [], "collectives": [], "ops": [
                {**op, "device_type": "H200", **second} for op in ops]}))
            plan = json.loads(self.good("search", HLO / "gpt.hlo", "--cluster", "1xH200:8", "--mesh", "8",
                                        "--json", "--profile", path))
        # Two layers of 9 + 3 x 3 products, and the head's 3.
        self.assertAlmostEqual(plan["compute_s"], 39, places=3)
        done = plait("search", HLO / "gpt.hlo", "--cluster", "1xT4:8", "--mesh", "8", "--profile", "h200")
        self.assertEqual((done.returncode, done.stderr), (2, "plait: --profile: has nothing of T4: what it has is "
                                                             "of H200\n"))

    def test_enumerate_writes_every_combination(self):
        rows = list(csv.DictReader(io.StringIO(self.good(
            "enumerate", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--mesh", "8", "--blocks", "1,2"))))
        # Columns, rows, positions, both with shared weights, inner summed, inner scattered: 7 x 7.
        self.assertEqual(len(rows), 49)
        self.assertGreater(len({row["bytes_sent"] for row in rows}), 1)

    def test_enumerate_writes_the_table_and_prints_json(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "all.csv"
            printed = json.loads(self.good("enumerate", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--mesh",
                                           "8", "--blocks", "1", "-o", table, "--json"))["combinations"]
            written = list(csv.DictReader(table.read_text().splitlines()))
        self.assertEqual([row["strategies"] for row in printed], [row["strategies"] for row in written])
        self.assertEqual(printed[0]["bytes_sent"], int(written[0]["bytes_sent"]))

    def test_enumerate_says_what_a_time_limit_left_out(self):
        done = plait("enumerate", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--mesh", "8", "--time-limit", "20ms",
                     "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = json.loads(done.stdout)
        self.assertGreater(printed["missing"], 0)
        self.assertEqual(len(printed["combinations"]) + printed["missing"], 7**5)
        self.assertEqual(done.stderr, f"plait: warning: cut short: {printed['missing']} of {7**5} combinations are "
                                      "missing\n")

    def test_what_is_wrong_is_said_with_its_place(self):
        self.refused("import jax\n", "this is Python, not HLO")
        self.refused("module @jit_f attributes {} {\n  func.func public @main() {}\n}", "StableHLO")
        self.refused("HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n", "cut off")
        self.refused("HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n"
                     "  ROOT y = f32[5] add(x, x)\n}\n", "contradicts add")
        self.refused("HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n"
                     "  ROOT y = f32[4] add(x, z)\n}\n", "z is not defined")
        self.refused("HloModule m\n\nf {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f\n}\n"
                     "ENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f\n}\n",
                     "calls itself")

    def test_tags_are_those_of_the_op_in_the_name(self):
        tag = 'frontend_attributes={plait="main:%d"}'
        # x^2 + 0 became x * x and has the tag of the sum; a constant factor's name stands behind.
        self.assertEqual(with_own_tags("  square_at_6.1 = f32[4]{0} multiply(x.1, x.1), " + tag % 9),
                         "  square.6.1 = f32[4]{0} multiply(x.1, x.1), " + tag % 6)
        self.assertEqual(
            with_own_tags("  add_at_5_broadcast_in_dim_at_4.1 = f32[4]{0} add(x.1, y.1), " + tag % 5),
            "  add_at_5_broadcast_in_dim.4.1 = f32[4]{0} add(x.1, y.1), " + tag % 5)
        self.assertEqual(with_own_tags("  erf_at_3.7 = f32[4]{0} tanh(x.1)"),
                         "  erf.3.7 = f32[4]{0} tanh(x.1), " + tag % 3)

    def test_what_a_reduction_applies_has_no_tags(self):
        tag = ', frontend_attributes={plait="main:4"}'
        inner = "sum.1 {\n  a = f32[] parameter(0)%s\n  ROOT b = f32[] add(a, a)%s\n}\n\n"
        main = "ENTRY main {\n  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum.1%s\n}\n" % tag
        self.assertEqual(with_own_tags(inner % (tag, tag) + main), inner % ("", "") + main)
        called = main.replace("reduce(x, zero), dimensions={0}", "call(x)")
        self.assertEqual(with_own_tags(inner % (tag, tag) + called), inner % (tag, tag) + called)

    def test_a_mesh_that_does_not_divide_the_devices_is_refused(self):
        done = plait("search", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--mesh", "3x3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("a mesh of 3x3 needs 9 devices, and the cluster has 8", done.stderr)

    def test_an_axis_that_divides_nothing_is_said(self):
        said = self.good("search", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:6", "--mesh", "2x3")
        self.assertIn("Along y all 3 devices do the same work in 10 of 10 blocks: their sizes do not "
                      "divide by 3.", said)
        self.assertNotIn("Along x", said)  # 2 divides them

    def test_a_program_that_was_divided_before_is_warned_of(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "part.hlo"
            path.write_text("HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                            "  ROOT c = f32[] add(a, b)\n}\n\nENTRY main {\n  x = f32[4] parameter(0)\n"
                            "  ROOT y = f32[4] all-reduce(x), replica_groups={}, to_apply=sum\n}\n")
            done = plait("analyze", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("part.hlo:11:8: all-reduce shows that this program was divided", done.stderr)

    def test_a_part_that_is_divided_by_hand_is_warned_of(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "map.hlo"
            path.write_text('HloModule m\n\nENTRY main {\n  x = f32[8] parameter(0)\n'
                            '  p = f32[1] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape"\n'
                            '  ROOT y = f32[8] custom-call(p), custom_call_target="xla.sdy.LocalToGlobalShape"\n}\n')
            done = plait("analyze", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("map.hlo:5:3: a part of this program is divided by hand (shard_map)", done.stderr)

    def test_too_little_memory_is_an_answer(self):
        done = plait("search", HLO / "gpt.hlo", "--cluster", "1xA100-80GB:8", "--mesh", "8",
                     "--memory", "0.00001")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no plan fits", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    options, rest = parser.parse_known_args()
    PROGRAM = options.program
    unittest.main(argv=["graph_test.py", *rest])
