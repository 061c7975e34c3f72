"""Measures decoding beside a process that takes one processor for itself, and in quiet.

usage: busy_core.py --yirage BIN [--pairs 11] [--threads 2] [--generate 192] [--core N] [--keep OPTIONS] [--before BIN]
                    [--nice N] [--out FILE] MODEL...

Each round runs every model in quiet and beside the busy process, with one thread, with `--threads` of which stalled ones
are left out, and with `--threads` that all take part in every step, in turn, greedy, without guessing. The last is asked
for by `--keep`, by default "--keep-stalled", or by `--before`, another build's program. The tokens of all must be
equal. The busy process is pinned to processor `--core`, by default the last that is allowed. Figures are medians of decode tokens/s (lowest to highest);
ratios are medians of the rounds' ratios, so that a machine that becomes faster or slower between rounds does not count.
With `--nice` all of this, the busy process too, runs at that niceness: below 0, what else the machine does counts less.
Prints the table of docs/benchmarks/threads.md. Needs Python alone, on Linux.
"""
import argparse
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys

PROMPT = "Once upon a time there was a little girl who lived by the sea."
SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@contextlib.contextmanager
def busy(core):
    """A process that takes all it gets of a processor; none for no processor."""
    if core is None:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", SPIN, str(core)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run(args, model, program, threads, options):
    command = [program, "run", "-m", model, "-p", PROMPT, "-n", str(args.generate), "--temperature", "0", "--ignore-eos",
               "--speculate", "off", "-t", str(threads), "--json", "--quiet", *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


def arms(args):
    keep = (args.before, []) if args.before else (args.yirage, shlex.split(args.keep))
    yield "one thread", args.yirage, 1, []
    yield f"{args.threads} threads, stalled ones left out", args.yirage, args.threads, []
    yield f"{args.threads} threads, all in every step", keep[0], args.threads, keep[1]


def measure(args, model, core):
    """One round: tokens/s by arm, and the tokens, which are the same for all."""
    speeds, tokens = {}, None
    with busy(core):
        for name, program, threads, options in arms(args):
            ran = run(args, model, program, threads, options)
            if ran["tokens"] != (tokens or ran["tokens"]):
                sys.exit(f"{model}: {name} gives other tokens")
            tokens = ran["tokens"]
            speeds[name] = ran["timings"]["decode_tokens_per_second"]
    return speeds, tokens


def rows(title, place, rounds):
    names = list(rounds[0])
    for name in names:
        speeds = [r[name] for r in rounds]
        ratio = lambda other: f"{statistics.median(r[name] / r[other] for r in rounds):.2f}"
        yield [title, place, name, f"{statistics.median(speeds):.1f} ({min(speeds):.1f} to {max(speeds):.1f})",
               ratio(names[0]), ratio(names[-1])]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--yirage", required=True)
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--generate", type=int, default=192)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--keep", default="--keep-stalled")
    parser.add_argument("--before")
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--out")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    if args.nice:
        os.nice(args.nice)
    places = {"quiet": None, f"processor {args.core} busy": args.core}
    print("| model | beside it | threads | tokens/s | of one thread | of all in every step |")
    print("|---|---|---|---|---|---|")
    everything = {}
    for model in args.models:
        rounds, tokens = {place: [] for place in places}, None
        for turn in range(args.pairs):
            for place, core in places.items():
                speeds, got = measure(args, model, core)
                if got != (tokens or got):
                    sys.exit(f"{model}: other tokens in round {turn + 1}")
                tokens = got
                rounds[place].append(speeds)
                said = ", ".join(f"{name} {speed:.1f}" for name, speed in speeds.items())
                print(f"round {turn + 1} of {args.pairs}, {place}: {said}", file=sys.stderr)
        everything[os.path.basename(model)] = rounds
        for place, of in rounds.items():
            for row in rows(os.path.basename(model), place, of):
                print("| " + " | ".join(row) + " |", flush=True)
    if args.out:
        with open(args.out, "w") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    main()
