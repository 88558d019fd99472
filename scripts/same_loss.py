#!/usr/bin/env python3
"""Trains a small GPT on this project's own documents under three plans and compares their losses.

    scripts/same_loss.py --program build/release/plait --steps 300

Two stages of two replicas, tensor parallel over two devices with ZeRO-1, and four stages: the plans
cut the model in three ways, and the losses must be the same. Needs plait-torch beside the program;
four ranks of one thread on the CPU take a minute or two. Exits with 1 when the losses differ.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = {"model_type": "gpt2", "n_layer": 4, "n_embd": 64, "n_head": 4, "n_positions": 64,
         "n_ctx": 64, "vocab_size": 512}
PLANS = {
    "two stages, two replicas": ["--pp", "2", "--tp", "1", "--dp", "2", "--zero", "0"],
    "tensor 2, data 2, ZeRO-1": ["--pp", "1", "--tp", "2", "--dp", "2", "--zero", "1"],
    "four stages": ["--pp", "4", "--tp", "1", "--dp", "1", "--zero", "0"],
}
# Sums come in another order under another plan, and training amplifies what that changes.
TOLERANCE = 0.01
LAST = 20  # steps whose mean is compared


def plait(program, folder, *words):
    done = subprocess.run([program, *map(str, words)], cwd=folder, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"plait {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    curves = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        documents = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
        (folder / "text.txt").write_text("".join(path.read_text() for path in documents))
        (folder / "model.json").write_text(json.dumps(MODEL))
        print(plait(program, folder, "tokenize", "text.txt", "-o", "tokens.bin", "--vocabulary",
                    MODEL["vocab_size"]), end="")
        for title, pins in PLANS.items():
            plait(program, folder, "plan", "--model", "model.json", "--cluster", "T4:4",
                  "--global-batch", 16, "--precision", "fp32", "--schedule", "1f1b", *pins, "-o",
                  "plan.json")
            out = plait(program, folder, "train", "plan.json", "--local", 4, "--threads-per-rank",
                        1, "--device", "cpu", "--tokens", "tokens.bin", "--lr", 0.001, "--steps",
                        options.steps, "--json")
            rows = [json.loads(line) for line in out.splitlines()]
            curves[title] = [row["loss"] for row in rows if "loss" in row]
    shown = sorted({0, *range(49, options.steps, 50), options.steps - 1})
    print("step  " + "  ".join(f"{title:>24}" for title in curves))
    for step in shown:
        print(f"{step + 1:4}  " + "  ".join(f"{curve[step]:24.4f}" for curve in curves.values()))
    means = [sum(curve[-LAST:]) / len(curve[-LAST:]) for curve in curves.values()]
    apart = max(means) / min(means) - 1
    print(f"mean of the last {LAST}: " + ", ".join(f"{mean:.4f}" for mean in means) +
          f"; {100 * apart:.3f} % apart")
    return apart > TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
