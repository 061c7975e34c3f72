#!/usr/bin/env python3
"""A model's forward passes, by the arguments of InfiniLM's example: text, speed with --bench, or --perplexity of a text."""

import argparse
import os
import sys
import time

try:
    import yirage as yr
    from yirage import command
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("jiuge.py: the package yirage is not installed: run `pip install .` in the folder of its repository")

DEVICES = ["cpu", "nvidia", "metax", "moore", "iluvatar", "cambricon", "ascend", "kunlun", "hygon", "qy", "ali"]


def arguments(given):
    parser = argparse.ArgumentParser(description=__doc__)
    device = parser.add_mutually_exclusive_group()
    for name in DEVICES:
        device.add_argument(f"--{name}", dest="device", action="store_const", const=name, help=f"run on {name}")
    device.add_argument("--device", dest="device", help="a backend by its name")
    parser.add_argument("--model_path", "--model-path", "--model", dest="model_path", required=True)
    parser.add_argument("--enable-fusion", action="store_true", help="keep and fuse plans, and show their statistics")
    parser.add_argument("--warmup", type=int, default=1, help="runs of a new plan before the one that counts")
    parser.add_argument("--prompt", default="Once upon a time")
    parser.add_argument("--batch-size", type=int, default=1, help="rows of the same prompt")
    parser.add_argument("--max-new-tokens", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--top-k", type=int, default=1)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bench", action="store_true", help="milliseconds of the prompt and of each further token")
    parser.add_argument("--perplexity", metavar="FILE", help="how well the model predicts a text")
    return parser.parse_args(given)


def engine_of(asked):
    if asked.enable_fusion:
        return yr.FusedInferEngine(asked.model_path, warmup_iterations=asked.warmup, device=asked.device)
    return yr.InferEngine(asked.model_path, device=asked.device)


def bench(engine, ids, asked):
    """Times of forward passes: the prompt, then token by token."""
    tokens, times = [row[:] for row in ids], []
    rows, start = tokens, 0
    for _ in range(asked.max_new_tokens):
        began = time.perf_counter()
        positions = [list(range(start, start + len(rows[0])))] * len(rows)
        chosen = engine.forward(rows, positions, temperature=asked.temperature, top_k=asked.top_k, top_p=asked.top_p)
        times.append((time.perf_counter() - began) * 1e3)
        start += len(rows[0])
        rows = [[token] for token in chosen]
    rest = times[1:] or times
    each = sum(rest) / len(rest)
    print(f"prompt of {len(ids[0])} tokens x {len(ids)}: {times[0]:.2f} ms")
    print(f"each further token: {each:.2f} ms, {len(ids) * 1e3 / each:.1f} tokens/s")


def main(given=None):
    asked = arguments(given)
    asked.model_path = os.path.expanduser(asked.model_path)
    try:
        if asked.perplexity:
            device = ["--backend", asked.device] if asked.device else []
            return command.run("perplexity", "--model", asked.model_path, "--file", asked.perplexity, *device).returncode
        with engine_of(asked) as engine:
            tokenizer = engine.get_tokenizer()
            ids = [tokenizer.encode(asked.prompt)] * asked.batch_size
            if asked.bench:
                bench(engine, ids, asked)
            else:
                how = yr.GenerationConfig(asked.max_new_tokens, asked.temperature, asked.top_k, asked.top_p, seed=asked.seed)
                for row in engine.generate(ids, how):
                    print(asked.prompt + tokenizer.decode(row, skip_special_tokens=True))
            if asked.enable_fusion:
                print(engine.get_stats())
    except yr.YirageError as error:
        print(f"jiuge.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
