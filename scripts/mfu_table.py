#!/usr/bin/env python3
"""Prints what share of its peak each device type of the catalogue is predicted to reach, in %.

    scripts/mfu_table.py                           # every device and eight models, one node of each
    scripts/mfu_table.py --across frameworks       # every device and framework, Llama 2 7B
    scripts/mfu_table.py --across sequence --devices H100,A100-80GB

A row that stands out is a constant to look at: dense models of a billion parameters and more train at 25 to
60 % of an H100's peak, 30 to 65 % of an A100's, 20 to 55 % of a V100's, 15 to 45 % of a T4's. `-`: nothing fits.
"""
import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["gpt2-xl", "llama-2-7b", "llama-3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "bert-large", "t5-large", "vit-large"]
FRAMEWORKS = ["megatron", "megatron-lm", "megatron-deepspeed", "deepspeed", "fsdp", "fsdp-compile", "jax", "eager"]
SEQUENCES = ["512", "2k", "8k", "32k", "128k", "512k"]


def mfu(program, device, flags):
    command = [program, "plan", "--cluster", f"1x{device}:8", "--json", "--top", "1", "--effort", "quick", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    plans = json.loads(done.stdout)["plans"] if done.returncode == 0 else []
    return f"{100 * plans[0]['mfu']:.0f}" if plans else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/plait"))
    parser.add_argument("--across", choices=["models", "frameworks", "sequence"], default="models")
    parser.add_argument("--devices", help="only these, with commas between")
    parser.add_argument("--global-batch", default="512")
    arguments = parser.parse_args()
    catalogue = json.loads((ROOT / "data/catalogue/devices.json").read_text())["devices"]
    devices = arguments.devices.split(",") if arguments.devices else [device["name"] for device in catalogue]
    llama = ["--model", "llama-2-7b", "--global-batch", arguments.global_batch]
    columns = {
        "models": {m: ["--model", m, "--global-batch", arguments.global_batch] for m in MODELS},
        "frameworks": {f: [*llama, "--framework", f] for f in FRAMEWORKS},
        "sequence": {s: [*llama, "--seq", s] for s in SEQUENCES},
    }[arguments.across]
    print(" " * 16 + "".join(f"{name[:13]:>14}" for name in columns))
    for device in devices:
        row = [mfu(arguments.program, device, flags) for flags in columns.values()]
        print(f"{device:16}" + "".join(f"{value:>14}" for value in row), flush=True)


if __name__ == "__main__":
    main()
