#!/usr/bin/env python3
"""Trains a model with plait and with eager PyTorch, the same shapes in the same run, on one GPU.

    bench/train_vs_eager.py build/gpu/plait gpt2-xl --micro-batch 8 --micro-batches 2
    bench/train_vs_eager.py build/gpu/plait llama-3.2-1b --sequence 2048 --micro-batch 4

The eager model is written as PyTorch's users write it: nn.Linear, F.scaled_dot_product_attention,
bf16 weights with fp32 master weights and fused AdamW ("master"), or fp32 weights under autocast
("autocast"). The faster of the two counts. Prints one line of JSON."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

SHAPES = {
    "gpt2-xl": dict(layers=48, hidden=1600, heads=25, kv_heads=25, ffn=6400, vocabulary=50257, llama=False),
    "gpt2": dict(layers=12, hidden=768, heads=12, kv_heads=12, ffn=3072, vocabulary=50257, llama=False),
    "llama-3.2-1b": dict(layers=16, hidden=2048, heads=32, kv_heads=8, ffn=8192, vocabulary=128256, llama=True),
}


def rotated(x, cosine, sine):
    a, b = x.chunk(2, -1)
    return x * cosine + torch.cat((-b, a), -1) * sine


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s, h = s, s["hidden"]
        self.head = h // s["heads"]
        keys = s["kv_heads"] * self.head
        bias = not s["llama"]
        norm = (lambda: nn.RMSNorm(h)) if s["llama"] else (lambda: nn.LayerNorm(h))
        self.norm1, self.norm2 = norm(), norm()
        self.qkv = nn.Linear(h, h + 2 * keys, bias=bias)
        self.projection = nn.Linear(h, h, bias=bias)
        self.up = nn.Linear(h, s["ffn"] * (2 if s["llama"] else 1), bias=bias)
        self.down = nn.Linear(s["ffn"], h, bias=bias)

    def forward(self, x, angles):
        s, (b, n, h) = self.s, x.shape
        keys = s["kv_heads"] * self.head
        q, k, v = self.qkv(self.norm1(x)).split((h, keys, keys), -1)
        q, k, v = (t.view(b, n, -1, self.head).transpose(1, 2) for t in (q, k, v))
        if s["llama"]:
            q, k = rotated(q, *angles), rotated(k, *angles)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=s["kv_heads"] != s["heads"])
        x = x + self.projection(y.transpose(1, 2).reshape(b, n, h))
        y = self.up(self.norm2(x))
        if s["llama"]:
            gate, up = y.chunk(2, -1)
            y = F.silu(gate) * up
        else:
            y = F.gelu(y, approximate="tanh")
        return x + self.down(y)


class Decoder(nn.Module):
    def __init__(self, s, sequence):
        super().__init__()
        self.s, self.sequence = s, sequence
        self.tokens = nn.Embedding(s["vocabulary"], s["hidden"])
        self.positions = None if s["llama"] else nn.Embedding(sequence, s["hidden"])
        self.blocks = nn.ModuleList(Block(s) for _ in range(s["layers"]))
        self.norm = nn.RMSNorm(s["hidden"]) if s["llama"] else nn.LayerNorm(s["hidden"])
        head = s["hidden"] // s["heads"]
        angle = torch.outer(torch.arange(sequence).float(), 1e4 ** (-torch.arange(0, head, 2).float() / head))
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, tokens, labels):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        angles = self.cosine.to(x.dtype), self.sine.to(x.dtype)
        for block in self.blocks:
            x = block(x, angles)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def eager(shape, a, mode):
    torch.manual_seed(1)
    device = torch.device("cuda")
    model = Decoder(shape, a.sequence).to(device)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.02)
    weights = list(model.parameters())
    trained = weights
    if mode == "master":
        trained = [p.detach().clone() for p in weights]
        model = model.bfloat16()
        weights = list(model.parameters())
    optimizer = torch.optim.AdamW(trained, lr=3e-4, betas=(0.9, 0.95), weight_decay=0, fused=True)
    times = []
    for step in range(a.steps):
        batches = [torch.randint(shape["vocabulary"], (a.micro_batch, a.sequence + 1), device=device)
                   for _ in range(a.micro_batches)]
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for batch in batches:
            with torch.autocast("cuda", torch.bfloat16, enabled=mode == "autocast"):
                loss = model(batch[:, :-1], batch[:, 1:]) / a.micro_batches
            loss.backward()
        if mode == "master":
            for master, p in zip(trained, weights):
                master.grad = p.grad.float()
        torch.nn.utils.clip_grad_norm_(trained, 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if mode == "master":
            torch._foreach_copy_([p.data for p in weights], trained)
            for p in weights:
                p.grad = None
        loss.item()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_allocated() / 2**30
    del model, optimizer, trained, weights
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return statistics.median(times[2:]), peak


def plait(a, folder):
    plan = pathlib.Path(folder) / "plan.json"
    words = [a.plait, "plan", "--model", a.model, "--cluster", a.cluster, "--seq", str(a.sequence),
             "--global-batch", str(a.micro_batch * a.micro_batches), "--micro-batch", str(a.micro_batch),
             "--framework", "plait", "--recompute", "none", "-o", str(plan)]
    if a.profile:
        words += ["--profile", a.profile]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run([a.plait, "train", str(plan), "--steps", str(a.steps), "--device", "cuda", "--json"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    steps = [row for row in rows if "step" in row]
    return (statistics.median(row["step_s"] for row in steps[2:]), steps[-1]["peak_memory_GiB"],
            rows[-1]["predicted_step_s"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plait")
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--cluster", default="1xH200:1")
    parser.add_argument("--profile")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured, peak, predicted = plait(a, folder)
    other = {mode: eager(SHAPES[a.model], a, mode) for mode in ("master", "autocast")}
    best = min(seconds for seconds, _ in other.values())
    print(json.dumps({
        "model": a.model, "sequence": a.sequence, "micro_batch": a.micro_batch, "micro_batches": a.micro_batches,
        "plait_s": measured, "plait_GiB": peak, "predicted_s": predicted, "prediction_error": predicted / measured - 1,
        "eager_s": {mode: seconds for mode, (seconds, _) in other.items()},
        "eager_GiB": {mode: gib for mode, (_, gib) in other.items()},
        "plait_over_eager": measured / best, "torch": torch.__version__, "device": torch.cuda.get_device_name()}))


if __name__ == "__main__":
    sys.exit(main())
