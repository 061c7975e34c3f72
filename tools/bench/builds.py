"""Two builds of yirage beside each other: is the new one slower to start, to read a prompt, to write?

usage: builds.py --before BIN --after BIN [--pairs 11] [--threads 2] [--tests start,touched,prefill,decode,depth,batch,memory]
                 MODEL...

Both builds run in turn, and which goes first changes with each pair, so that a machine that becomes faster or slower
counts for both. A figure is the median of the pairs' ratios, with the lowest and the highest; times are after / before,
speeds after / before too. Each build keeps repacked weights in a folder of its own, written before anything counts.

start    a whole process that gives one token after a prompt of one
touched  the same after the kept weights' files were touched, so that a build that knows which entries it has checked
         must check them again
prefill  a prompt of 512 tokens
decode   128 tokens
depth    64 tokens after 2048 that are cached
batch    16 sequences of 32 tokens
memory   most resident memory of a prompt of 512, in MiB

Prints the table of docs/benchmarks/builds.md. Needs Python alone.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BENCH = {
    "prefill": ["-p", "512", "-n", "0"],
    "decode": ["-p", "0", "-n", "128"],
    "depth": ["-p", "0", "-n", "64", "-d", "2048"],
    "batch": ["-p", "0", "-n", "32", "--sequences", "16"],
}
WALL = ("start", "touched")
# Standard output and standard error of a process of which only the memory counts.
NOWHERE = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
UNITS = {"start": "s", "touched": "s", "memory": "MiB"}
# Seconds after which an entry of kept weights is surely vouched for by a check.
SETTLED = 3


def run(build, words):
    command = [build.binary, *words, "--weight-cache-dir", str(build.folder), "--threads", str(build.threads), "--quiet"]
    began = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True)
    took = time.perf_counter() - began
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr[-2000:]}")
    return took, ran.stdout


class Build:
    def __init__(self, binary, folder, threads):
        self.binary, self.folder, self.threads = os.path.abspath(binary), folder, threads

    def start(self, model):
        words = ["run", "--model", model, "--prompt-ids", "1", "--max-tokens", "1", "--temperature", "0", "--speculate", "off"]
        return run(self, words)

    def figure(self, test, model):
        if test == "touched":
            for entry in self.folder.glob("*.packed"):
                os.utime(entry)
        if test in WALL:
            return self.start(model)[0]
        if test == "memory":
            return self.resident(model)
        _, out = run(self, ["bench", "--model", model, *BENCH[test], "-r", "1", "-o", "json"])
        return json.loads(out)[0]["avg_ts"]


    def resident(self, model):
        words = ["bench", "--model", model, *BENCH["prefill"], "-r", "1", "--weight-cache-dir", str(self.folder)]
        words += ["--threads", str(self.threads), "--quiet"]
        child = os.posix_spawn(self.binary, [self.binary, *words], os.environ, file_actions=NOWHERE)
        _, status, usage = os.wait4(child, 0)
        if status != 0:
            sys.exit(f"{self.binary} {' '.join(words)} failed")
        return usage.ru_maxrss / 1024


def measure(before, after, test, model, pairs):
    values = []
    for turn in range(pairs):
        order = (before, after) if turn % 2 == 0 else (after, before)
        figures = {build: build.figure(test, model) for build in order}
        values.append((figures[before], figures[after]))
        print(f"{os.path.basename(model)} {test} {turn + 1}/{pairs}: {values[-1][1] / values[-1][0]:.3f}", file=sys.stderr)
    return values


def row(model, test, values):
    unit = UNITS.get(test, "tokens/s")
    sides = [statistics.median(side) for side in zip(*values)]
    ratios = sorted(b / a for a, b in values)
    shown = " | ".join(f"{v:.3f}" if unit == "s" else f"{v:.1f}" for v in sides)
    ratio = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
    return f"| {pathlib.Path(model).stem} | {test}, {unit} | {shown} | {ratio} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--tests", default="start,touched,prefill,decode")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [pathlib.Path(scratch, side) for side in ("before", "after")]
        before, after = (Build(b, f, args.threads) for b, f in zip((args.before, args.after), folders))
        rows = []
        for model in args.models:
            # The first start writes the kept weights; a later one may have to check them, once they are some time old.
            for build in (before, after):
                build.start(model)
            time.sleep(SETTLED)
            for build in (before, after):
                build.start(model)
            rows += [row(model, test, measure(before, after, test, model, args.pairs)) for test in args.tests.split(",")]
    print("| model | test | before | after | after / before, median of pairs (lowest to highest) |")
    print("|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
