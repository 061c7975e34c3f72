"""Whether a build of yirage starts as quickly as another: what a shell waits for before a command has said its word.

usage: start_time.py --before BIN --after BIN [--pairs 51] [--nice N] [--out FILE] [COMMAND...]

A COMMAND is the words behind the program's name, in quotes: by default `version`, `-h`, `--help`, `help`, `run -h`,
`devices --json`, `models --json` and `config explain --json`. Every round runs every command of both builds in turn, and which
build goes first changes with each round. Each process has an empty home folder, and its output goes nowhere. Times are
milliseconds from the start of a process to its end, and those that processors spent on it: medians, lowest to highest. A ratio
is the median of the rounds' ratios, after / before: one at most 1 is no loss. `--nice` below 0 makes what else runs count less;
processor times hardly depend on it. A command that a build ends with an error is told and left out.
Prints the table of docs/benchmarks/builds.md. Needs Python alone, on Unix.
"""
import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time

COMMANDS = ["version", "-h", "--help", "help", "run -h", "devices --json", "models --json", "config explain --json"]
NOWHERE = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, flags, 0) for stream, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY))]


def run(binary, words, home):
    """Milliseconds of a process and of processors, or the exit code of one that failed."""
    surroundings = {"HOME": home, "PATH": os.environ.get("PATH", os.defpath)}
    began = time.perf_counter()
    process = os.posix_spawn(binary, [binary, *words], surroundings, file_actions=NOWHERE)
    _, status, used = os.wait4(process, 0)
    took = time.perf_counter() - began
    code = os.waitstatus_to_exitcode(status)
    return (1e3 * took, 1e3 * (used.ru_utime + used.ru_stime)) if code == 0 else code


def figures(rounds, which):
    """The cells of a table for one kind of time: of both builds, and of their ratios."""
    times = [[one[build][which] for one in rounds] for build in (0, 1)]
    ratio = statistics.median(after / before for before, after in zip(*times))
    return [*(f"{statistics.median(one):.2f} ({min(one):.2f} to {max(one):.2f})" for one in times), f"{ratio:.2f}"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--pairs", type=int, default=51)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--out")
    parser.add_argument("commands", nargs="*")
    args = parser.parse_args()
    if args.nice:
        os.nice(args.nice)
    builds = [os.path.abspath(args.before), os.path.abspath(args.after)]
    with tempfile.TemporaryDirectory() as home:
        rounds = {}
        for command in args.commands or COMMANDS:
            # The first of each reads the program from the disk, and counts for nothing.
            codes = [run(build, shlex.split(command), home) for build in builds]
            if failed := [(build, code) for build, code in zip(builds, codes) if isinstance(code, int)]:
                print("".join(f"{build} {command}: exit code {code}, left out\n" for build, code in failed), end="", file=sys.stderr)
                continue
            rounds[command] = []
        for turn in range(args.pairs):
            for command, of in rounds.items():
                pair = [None, None]
                for build in (0, 1) if turn % 2 == 0 else (1, 0):
                    pair[build] = run(builds[build], shlex.split(command), home)
                of.append(pair)
    print("| command | before, ms | after, ms | after / before | before, processor ms | after, processor ms | after / before |")
    print("|---|---|---|---|---|---|---|")
    for command, of in rounds.items():
        print("| " + " | ".join([f"`{command}`", *figures(of, 0), *figures(of, 1)]) + " |")
    if args.out:
        with open(args.out, "w") as file:
            json.dump(rounds, file, indent=1)


if __name__ == "__main__":
    main()
