"""The Python package beside what it stands on: calls of small graphs, an operation of PyTorch between two of ours, and
`LLM.generate` beside the `yirage` command and beside transformers on the same model and processor.

usage: python.py [--calls] [--generate GGUF --yirage BIN [--transformers]] [--threads 2] [--rounds 7]

Run it with an interpreter that has the package, NumPy and PyTorch; transformers reads the GGUF file and computes in f32 and
in bfloat16. The sides run in turn; medians over rounds. Tokens are greedy, and new ones are counted from the second on.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

os.environ["HF_HUB_OFFLINE"] = "1"


def per_call(run, count):
    began = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - began) / count


def calls(options):
    import numpy as np
    import torch

    import yirage as yr

    torch.set_num_threads(options.threads)

    def graph(dims, op):
        made = yr.new_kernel_graph()
        made.mark_output(op(made, *[made.new_input(list(d), dtype="float32") for d in dims]))
        return made

    one = graph([(1,)], lambda g, x: g.mul_scalar(x, 2.0))
    added = graph([(1,), (1,)], lambda g, x, y: g.add(x, y))
    arrays, tensors = [np.ones(1, np.float32)] * 2, [torch.ones(1)] * 2
    sides = {
        "mul_scalar of one element, NumPy": lambda: one(inputs=arrays[:1]),
        "mul_scalar of one element, PyTorch": lambda: one(inputs=tensors[:1]),
        "add of two elements, NumPy": lambda: added(inputs=arrays),
        "add of two elements, PyTorch": lambda: added(inputs=tensors),
        "NumPy's own multiplication": lambda: np.multiply(arrays[0], 2.0),
        "PyTorch's own multiplication": lambda: torch.mul(tensors[0], 2.0),
    }
    took = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, run in sides.items():
            took[name].append(per_call(run, 5000))
    print("| call | µs |\n|---|---|")
    for name, times in took.items():
        print(f"| {name} | {statistics.median(times) * 1e6:.2f} |")

    print("\n| operation of PyTorch | alone, µs | between two products of PyTorch | between two of ours | ours over alone |")
    print("|---|---|---|---|---|")
    for rows, columns in [(256, 512), (2048, 2048)]:
        a, b = torch.randn(rows, columns), torch.randn(columns, 512)
        product = graph([(rows, columns), (columns, 512)], lambda g, x, w: g.matmul(x, w))
        between = {"alone": lambda: None, "PyTorch": lambda: torch.matmul(a, b), "ours": lambda: product(inputs=[a, b])}
        for name, run in {
            f"matmul of {rows} x {columns} by {columns} x 512": lambda: torch.matmul(a, b),
            f"exp of {rows} x {columns}": lambda: torch.exp(a),
            f"softmax of {rows} x {columns}": lambda: torch.softmax(a, -1),
        }.items():
            took = {other: [] for other in between}
            for _ in range(options.rounds * 30):
                for other, work in between.items():
                    run()
                    work()
                    began = time.perf_counter()
                    run()
                    took[other].append(time.perf_counter() - began)
                    work()
            ratio = statistics.median(y / x for x, y in zip(took["alone"], took["ours"]))
            middle = " | ".join(f"{statistics.median(times) * 1e6:.0f}" for times in took.values())
            print(f"| {name} | {middle} | {ratio:.3f} |")


def generate(options):
    import yirage as yr

    prompt = [1 + at * 37 % 900 for at in range(options.prompt)]
    counts = (1, options.tokens)

    def package(guesses):
        with yr.LLM(options.generate, threads=options.threads, speculative_config="auto" if guesses else None) as llm:
            found = {}
            for count in (2, *counts):
                params = yr.SamplingParams(temperature=0, max_tokens=count, ignore_eos=True)
                llm.reset_prefix_cache()
                began = time.perf_counter()
                (answer,) = llm.generate([{"prompt_token_ids": prompt}], params, use_tqdm=False)
                found[count] = time.perf_counter() - began
            first, last = (found[count] for count in counts)
            return len(prompt) / first, (options.tokens - 1) / (last - first), answer.outputs[0].token_ids

    def command(guesses):
        words = [options.yirage, "run", "--model", options.generate, "--threads", options.threads, "--json", "--quiet",
                 "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens", options.tokens, "--temperature", "0",
                 "--ignore-eos", "--speculate", "auto" if guesses else "off"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
        said = json.loads(done.stdout.splitlines()[-1])
        times = said["timings"]
        return times["prefill_tokens_per_second"], times["decode_tokens_per_second"], said["tokens"]

    sides = {"LLM.generate": lambda: package(False), "yirage run": lambda: command(False),
             "LLM.generate, guessing": lambda: package(True), "yirage run, guessing": lambda: command(True)}
    if options.transformers:
        sides |= {f"transformers, {dtype}": others(options, prompt, counts, dtype) for dtype in ("float32", "bfloat16")}
    rates = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, side in sides.items():
            rates[name].append(side())
    mine = rates["LLM.generate"]
    for name in list(sides)[1:4]:
        assert mine[0][2] == rates[name][0][2], f"LLM.generate and {name} say different tokens"
    print("| | prompt tokens/s | new tokens/s | LLM.generate over it: prompt, new |\n|---|---|---|---|")
    for name, found in rates.items():
        prefill, decode = (statistics.median(run[at] for run in found) for at in (0, 1))
        over = [statistics.median(ours[at] / run[at] for ours, run in zip(mine, found)) for at in (0, 1)]
        print(f"| {name} | {prefill:.1f} | {decode:.1f} | {over[0]:.3f}, {over[1]:.3f} |")


def others(options, prompt, counts, dtype):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(options.threads)
    folder, file = os.path.split(os.path.abspath(options.generate))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=getattr(torch, dtype))
    ids = torch.tensor([prompt])

    def run():
        found = {}
        for count in counts:
            began = time.perf_counter()
            with torch.inference_mode():
                told = model.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False)
            found[count] = time.perf_counter() - began
        first, last = (found[count] for count in counts)
        return len(prompt) / first, (options.tokens - 1) / (last - first), told[0, len(prompt) :].tolist()

    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--generate")
    parser.add_argument("--yirage")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    if options.calls:
        calls(options)
    if options.generate:
        generate(options)


if __name__ == "__main__":
    main()
