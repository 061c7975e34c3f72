"""Compares yirage with llama.cpp on this machine's CPU, both in turn on the same files.

usage: cpu.py --yirage BIN --llama-bench BIN --out DIR [--rounds 5] [--threads N] [--prompt 512] [--generate 64] MODEL...

Each round runs every program once: yirage, llama.cpp as it comes, and llama.cpp with `--repack 0` (which of the two is
faster depends on the format). Three tests: prefill of a prompt, decode behind that prompt, and a whole process that
loads the model and gives one token (seconds and peak resident memory). Figures are medians with lowest and highest; the
ratio is that of the medians against the better of llama.cpp's two. Writes DIR/cpu.json and DIR/cpu.svg, and prints
the table of docs/benchmarks/cpu.md. Needs Python alone.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("yirage", "llama.cpp", "llama.cpp --repack 0")
TESTS = ("prefill", "decode", "start", "memory")
UNITS = {"prefill": "tokens/s", "decode": "tokens/s", "start": "s", "memory": "MiB"}


def measured(command):
    """Runs a command: its standard output, wall seconds, peak resident MiB."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            sys.exit(f"{' '.join(command)[:200]} failed:\n{err.read().decode(errors='replace')[-2000:]}")
        return out.read().decode(), wall, usage.ru_maxrss / 1024


def yirage_run(args, model, ids, generate):
    ids = ",".join(map(str, ids))
    command = [args.yirage, "run", "--model", model, "--prompt-ids", ids, "--max-tokens", str(generate), "--temperature",
               "0", "--ignore-eos", "--threads", str(args.threads), "--json", "--quiet"]
    out, wall, memory = measured(command)
    return json.loads(out)["timings"], wall, memory


def yirage(args, model, turn):
    ids = [100 + (7919 * i + 31337 * turn) % 20000 for i in range(args.prompt)]
    timings, _, _ = yirage_run(args, model, ids, args.generate)
    _, wall, memory = yirage_run(args, model, ids[:1], 1)
    return {"prefill": timings["prefill_tokens_per_second"], "decode": timings["decode_tokens_per_second"], "start": wall,
            "memory": memory}


def llama(args, model, repack):
    common = [args.llama_bench, "-m", model, "-t", str(args.threads), "-r", "1", "--repack", str(repack), "-o", "json"]
    out, _, _ = measured([*common, "-p", str(args.prompt), "-n", "0"])
    prefill = json.loads(out)[0]["avg_ts"]
    out, _, _ = measured([*common, "-p", "0", "-n", str(args.generate), "-d", str(args.prompt)])
    decode = json.loads(out)[0]["avg_ts"]
    _, wall, memory = measured([*common, "-p", "0", "-n", "1", "--no-warmup"])
    return {"prefill": prefill, "decode": decode, "start": wall, "memory": memory}


def figures(args, model):
    runs = {p: {t: [] for t in TESTS} for p in PROGRAMS}
    for turn in range(args.rounds):
        for program in PROGRAMS:
            print(f"{os.path.basename(model)}: round {turn + 1} of {args.rounds}, {program}", file=sys.stderr)
            result = yirage(args, model, turn) if program == "yirage" else llama(args, model, int(program == "llama.cpp"))
            for test, value in result.items():
                runs[program][test].append(value)
    return runs


def better(runs, test):
    """Median of the better of llama.cpp's two ways."""
    medians = [statistics.median(runs[p][test]) for p in PROGRAMS[1:]]
    return max(medians) if UNITS[test] == "tokens/s" else min(medians)


def cell(values):
    digits = 0 if min(values) >= 100 else 1 if min(values) >= 10 else 2
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(results):
    yield "| model | test | " + " | ".join(PROGRAMS) + " | yirage / better |"
    yield "|---" * (len(PROGRAMS) + 3) + "|"
    for model, runs in results.items():
        for test in TESTS:
            cells = " | ".join(cell(runs[p][test]) for p in PROGRAMS)
            ratio = statistics.median(runs["yirage"][test]) / better(runs, test)
            yield f"| {model} | {test}, {UNITS[test]} | {cells} | {ratio:.2f} |"


def plot(results):
    """Bars of speed relative to the better of llama.cpp's two: an SVG."""
    bars = [(f"{model}, {test}", statistics.median(runs["yirage"][test]) / better(runs, test))
            for model, runs in results.items() for test in ("prefill", "decode")]
    left, unit, row = 330, 160, 28
    width, height = left + int(unit * max(2.0, *(r for _, r in bars))) + 70, row * len(bars) + 50
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="13"><rect width="100%" height="100%" fill="white"/>')
    yield f'<text x="{left}" y="18">tokens/s, times the better of llama.cpp with and without repacking</text>'
    for i, (label, ratio) in enumerate(bars):
        y = 32 + row * i
        yield f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{label}</text>'
        yield f'<rect x="{left}" y="{y}" width="{ratio * unit:.0f}" height="{row - 8}" fill="#3a6ea5"/>'
        yield f'<text x="{left + ratio * unit + 6:.0f}" y="{y + 15}">{ratio:.2f}</text>'
    x = left + unit
    yield f'<line x1="{x}" y1="26" x2="{x}" y2="{height - 10}" stroke="#b03030" stroke-dasharray="4 3"/></svg>'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yirage", required=True)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    args = parser.parse_args()
    results = {os.path.basename(m).removesuffix(".gguf"): figures(args, m) for m in args.models}
    os.makedirs(args.out, exist_ok=True)
    settings = {"threads": args.threads, "prompt": args.prompt, "generate": args.generate, "rounds": args.rounds}
    with open(os.path.join(args.out, "cpu.json"), "w") as f:
        json.dump({"settings": settings, "results": results}, f, indent=1)
        f.write("\n")
    with open(os.path.join(args.out, "cpu.svg"), "w") as f:
        f.write("\n".join(plot(results)) + "\n")
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
