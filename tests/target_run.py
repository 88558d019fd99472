"""What the checks of tests/targets_test.py share: the program, its plans, and the scripts that it exports."""
import json
import subprocess
import tempfile

from stub_launchers import Stubs


class Run:
    """Set by tests/targets_test.py."""
    program = None
    folder = None


def plait(*words, ok=(0,)):
    done = subprocess.run([Run.program, *map(str, words)], cwd=Run.folder, capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode in ok, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


def recorded(script, **more):
    """Words of the first program that run.sh starts, and the environment that it gets."""
    stubs = Stubs(tempfile.mkdtemp(dir=Run.folder))
    return stubs.run(["bash", str(script)], Run.folder, **more)


class Plan:
    def __init__(self, path):
        saved = json.loads(path.read_text())
        self.plan, self.model, self.job = saved["plan"], saved["model"], saved["job"]
        self.stages, self.describe = self.plan["stages"], saved["describe"]
        self.network = self.model["architecture"].get("transformer")  # None: only ops are known
        span = self.stages[0]["spans"][0]
        self.tensor, self.data = span.get("tensor", 1), span.get("data", 1)
        self.context, self.expert = self.plan.get("context", 1), self.plan.get("expert", 1)
        self.devices = [d for s in self.stages for d in s["devices"]]

    def padded_vocabulary(self, flags):
        """As Megatron-LM pads it; the tokenizer that only counts adds a word."""
        multiple = int(flags["make_vocab_size_divisible_by"]) * self.tensor
        return -(-(int(flags["vocab_size"]) + 1) // multiple) * multiple

    def known_to_torchtitan(self):
        plan = {"tensor": self.tensor, "context": self.context, "data": self.data,
                "zero": int(self.plan.get("zero", 0)) if self.data * self.context > 1 else 0,
                "recompute": self.stages[0]["spans"][0].get("recompute", "none"),
                "sequence_parallel": self.tensor > 1 and self.plan["sequence_parallel"],
                "micro_batches": self.plan["micro_batches"]}
        if len(self.stages) == 1:
            return plan
        return plan | {"schedule": self.plan["schedule"], "layers": self.layers_by_chunk(), "stages": len(self.stages)}

    def layers_by_chunk(self):
        """Layers of each chunk in the order of the pipeline: units without embedding and head."""
        count, chunks = self.network["layers"] + 2, {}
        for s, stage in enumerate(self.stages):
            for span in stage["spans"]:
                begin, end = span["units"]
                layers = sum(1 for u in range(begin, end) if 0 < u < count - 1)
                key = (span.get("chunk", 0), s)
                chunks[key] = chunks.get(key, 0) + layers
        if self.plan.get("schedule") == "zb-v":
            last = len(self.stages) - 1
            keys = sorted(chunks, key=lambda k: k[1] if k[0] == 0 else 2 * last + 1 - k[1])
        else:
            keys = sorted(chunks)
        return [chunks[key] for key in keys]
