#!/usr/bin/env python3
"""The hostile trial: damaged files, strange commands and files that are no files, and how the program takes them.

    tools/hostile/run.py                         the whole trial
    tools/hostile/run.py --share 0.1             a tenth of every family
    tools/hostile/run.py --only gguf,config      these families
    tools/hostile/run.py --replay gguf:123       one run again, with all it says
"""
import argparse
import atexit
import concurrent.futures
import json
import math
import os
import random
import shlex
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import base
import commandline
import config
import gguf
import judge
import place
import process
import safetensors
import special
import template
import tokenizer
import weights
from case import Case

FAMILIES = [module.FAMILY for module in
            (gguf, tokenizer, config, safetensors, template, weights, commandline, special)]
REPOSITORY = Path(__file__).resolve().parents[2]


class Trial:
    """One trial: the program, the unharmed models, and what they say."""

    def __init__(self, options):
        self.program = str(options.yirage.resolve())
        self.seed = options.seed
        self.limits = process.Limits(options.wall, options.memory << 20)
        self.work = options.work.resolve()
        self.base = self.work / "base"
        self.found = self.work / "found"
        self.baselines, self.lock = {}, threading.Lock()
        base.write(self.base)
        self.runs = self.work / f"runs-{os.getpid()}"
        shutil.rmtree(self.runs, ignore_errors=True)
        self.runs.mkdir(parents=True)

    def environment(self, folder, extra):
        """Surroundings in which nothing of the user's is found."""
        env = {"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "YIRAGE_WEIGHT_CACHE": "off", "LANG": "C.UTF-8"}
        env |= {name: str(folder / ".home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
                                                        "HF_HOME")}
        env |= extra
        return {name: value for name, value in env.items() if value is not None}

    def command(self, case):
        command = [self.program, *case.args]
        return ["bash", "-c", case.shell, "bash", *command] if case.shell else command

    def limits_of(self, case):
        """What a case may take: what measures the machine fills memory that no cache holds, and takes its time."""
        measures = case.args[:1] in (["bench"], ["doctor"])
        return process.Limits(3 * self.limits.wall, 3 * self.limits.memory_bytes) if measures else self.limits

    def execute(self, case, folder):
        place.fill(folder, case.files)
        try:
            env = self.environment(folder, case.env)
            return process.run(self.command(case), folder, env, case.stdin, self.limits_of(case), case.during)
        finally:
            place.clear(folder)

    def baseline(self, case):
        """What the unharmed run that `case` is like says."""
        if case.like is None:
            return None
        key = (tuple(case.like), case.keys)
        with self.lock:
            if key not in self.baselines:
                unharmed = Case("unharmed", list(case.like))
                ran = self.execute(unharmed, self.runs / f"unharmed-{len(self.baselines)}")
                if ran.code != 0:
                    sys.exit(f"the unharmed run fails: {shlex.join(map(str, case.like))}\n{ran.err.decode()}")
                self.baselines[key] = judge.answer(case, ran.out)
            return self.baselines[key]

    def case(self, family, number):
        return family.make(random.Random(f"{self.seed}:{family.name}:{number}"), self.base, self.shared(family))

    def shared(self, family):
        return self.work / "shared" / family.name

    def prepare(self, family):
        folder = self.shared(family)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if family.prepare:
            family.prepare(self.base, folder, lambda case: self.execute(case, self.runs / "prepare"))

    def try_one(self, family, number):
        """(finding or None, outcome) of one run."""
        case = self.case(family, number)
        folder = self.runs / f"{family.name}-{number}"
        ran = self.execute(case, folder)
        wrong, outcome = judge.finding(case, ran, self.limits_of(case), self.baseline(case))
        return (case, ran, wrong) if wrong else None, outcome

    def keep(self, family, number, case, ran, wrong):
        """Keeps a finding's files and a script that runs it again."""
        folder = self.found / f"{family.name}-{number}"
        place.clear(folder)
        place.fill(folder, case.files)
        env = self.environment(folder, case.env)
        lines = ["#!/usr/bin/env bash", f"# {case.what}: {wrong}".encode("ascii", "replace").decode(),
                 f"cd {shlex.quote(str(folder))}"]
        unset = [name for name, value in case.env.items() if value is None]
        words = ["env", "-i", *[f"{k}={os.fsdecode(v)}" for k, v in env.items() if k not in unset],
                 *map(os.fsdecode, self.command(case))]
        lines.append(shlex.join(words))
        (folder / "replay.sh").write_bytes(os.fsencode("\n".join(lines) + "\n"))
        (folder / "stdout").write_bytes(ran.out[:100_000])
        (folder / "stderr").write_bytes(ran.err[:100_000])
        return folder / "replay.sh"


def numbers(family, count, share, seed):
    """Which runs of a family a share of the trial has."""
    chosen = list(range(count))
    random.Random(f"{seed}:{family.name}").shuffle(chosen)
    return chosen[:math.ceil(count * share)]


def hold(trial, families, options):
    """Runs the trial; how many findings there were."""
    tally, found, started = {}, [], time.monotonic()
    for family in families:
        trial.prepare(family)
        tally[family.name] = Counter()
        chosen = numbers(family, options.count.get(family.name, family.count), options.share, options.seed)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            ends = pool.map(lambda number, family=family: (number, *trial.try_one(family, number)), chosen)
            for number, wrong, outcome in ends:
                tally[family.name][outcome] += 1
                if wrong:
                    case, ran, words = wrong
                    script = trial.keep(family, number, case, ran, words)
                    found.append((family.name, number, case.what, words))
                    print(f"FINDING {family.name}:{number}: {printable(case.what)}: {words}\n    {script}", flush=True)
        print(f"{family.name}: {summary(tally[family.name])}  [{time.monotonic() - started:.0f} s]", flush=True)
    total = sum(sum(counts.values()) for counts in tally.values())
    print(f"hostile trial: {total} runs, {len(found)} findings")
    if options.report:
        report = {"runs": total, "families": tally, "findings": found}
        options.report.write_text(json.dumps(report, indent=1))
    return len(found)


def summary(counts):
    ends = ", ".join(f"{counts[name]} {words}" for name, words in
                     (("error", "refused"), ("same", "the same answer"), ("other", "another answer, allowed"),
                      ("finding", "FINDINGS")) if counts[name])
    return f"{sum(counts.values())} runs: {ends}"


def replay(trial, families, which):
    """Runs one case again and shows all of it."""
    name, number = which.split(":")
    family = next(f for f in families if f.name == name)
    trial.prepare(family)
    case = trial.case(family, int(number))
    ran = trial.execute(case, trial.runs / "replay")
    wrong, outcome = judge.finding(case, ran, trial.limits_of(case), trial.baseline(case))
    print(f"{case.what}\n$ {printable(shlex.join(os.fsdecode(word) for word in trial.command(case)))}")
    print(f"exit {ran.code}, {ran.seconds:.2f} s, {ran.peak_bytes / 2**20:.0f} MiB\n"
          f"stdout: {ran.out[:4000]!r}\nstderr: {ran.err[:4000]!r}\nallowed: {', '.join(sorted(case.allow))}; "
          f"{wrong or outcome}")
    print(f"files and script: {trial.keep(family, int(number), case, ran, wrong or outcome)}")
    return wrong is not None


def printable(words):
    return words.encode("ascii", "backslashreplace").decode()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    builds = [REPOSITORY / "target" / kind / "yirage" for kind in ("release", "debug")]
    parser.add_argument("--yirage", type=Path, default=next((b for b in builds if b.exists()), builds[0]))
    parser.add_argument("--share", type=float, default=1.0, help="part of every family")
    parser.add_argument("--only", default="", help="families, with commas")
    parser.add_argument("--count", default="", help="runs of families: gguf=100,config=20")
    parser.add_argument("--seed", default="yirage")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--wall", type=float, default=10.0, help="seconds a run may take")
    parser.add_argument("--memory", type=int, default=1024, help="MiB a run may take")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "target" / "hostile")
    parser.add_argument("--report", type=Path, help="the counts and findings as JSON")
    parser.add_argument("--replay", metavar="FAMILY:NUMBER")
    options = parser.parse_args()
    options.count = {name: int(n) for name, n in (pair.split("=") for pair in options.count.split(",") if pair)}
    if not options.yirage.exists():
        parser.error(f"{options.yirage} is not there: cargo build --release, or --yirage")
    return options


def main():
    options = arguments()
    only = [name for name in options.only.split(",") if name]
    unknown = set(only) - {family.name for family in FAMILIES}
    if unknown:
        sys.exit(f"no such family: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    atexit.register(process.kill_all)
    trial = Trial(options)
    try:
        if options.replay:
            return replay(trial, FAMILIES, options.replay)
        shutil.rmtree(trial.found, ignore_errors=True)
        return hold(trial, [f for f in FAMILIES if not only or f.name in only], options) > 0
    finally:
        place.clear(trial.runs)


if __name__ == "__main__":
    sys.exit(main())
