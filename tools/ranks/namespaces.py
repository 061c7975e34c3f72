#!/usr/bin/env python3
"""Shows what becomes of the ranks of a model when the network or one of them fails.

Each of many random schedules starts the program on some ranks: by Open MPI in two network namespaces, with a link
between them that delays and loses packets, or by itself over shared memory. At a random moment a rank is killed or
stopped, or the link is cut, for good or for a moment. After each: the right tokens (those of one rank), or an error in
the program's own words, within the deadline of the ranks and some slack after the event; then no process is left, and
no file in /dev/shm.

It deliberately does not know how ranks talk to each other or which error fits which event: any error with a kind and a
message will do. Nor does it judge mpirun: where a rank is killed, mpirun may end the others before they can say
anything; over a cut link it waits for its other half without a deadline, and so it does for a rank that was stopped on
its way out, behind the last word of the others. These are counted, and no failures. Moments before all ranks run are
mpirun's as well; none are drawn.

Needs root, Linux with /dev/net/tun, iproute2, util-linux and Open MPI. Exit code 1: something failed; 3: no root.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from place import ADDRESSES, AGENT, MARK, NAMES, SUBNET, Link
from place import about, end_all, leave_the_mounts_of_others, marked, ranks_of, state

MODEL = Path(__file__).parents[2] / "crates/yirage-testkit/fixtures/bedtime/bedtime-q8_0.gguf"
# How many tokens, and about how many seconds those take from the start of the ranks: the event comes within that time.
# By transport, way and whether the link delays: `--tp` waits for the link many times a token, `--pp` once.
WORK = {
    ("local", "tp", False): (1000, 2.0), ("local", "pp", False): (3000, 2.0),
    ("mpi", "tp", False): (60, 2.5), ("mpi", "pp", False): (250, 2.5),
    ("mpi", "tp", True): (4, 8.0), ("mpi", "pp", True): (40, 5.0),
}
BLIP = 0.2
# What ends a schedule that does not end by itself, in all and behind an event that does lasting harm; and how long
# mpirun may tidy up behind its last rank.
LIMIT, LIMIT_ABOVE_DEADLINE, TIDY, TIDY_WHEN_CUT = 60.0, 5.0, 10.0, 2.0
JOINING = 10.0
# What does lasting harm, so that an end has to follow; after all else the answer goes on and takes what it takes.
LASTING = ("killed", "stopped", "cut")
TYPED = re.compile(r'"error":\{"code":\d+,"kind":"|^(yirage: )?error', re.MULTILINE)
BROKEN = re.compile(r"panicked at|stack backtrace|RUST_BACKTRACE|unreachable")
OF_OPEN_MPI = re.compile(r"vader|ompi|openmpi|pmix|orte")
RANK = """#!/bin/sh
# One rank; what it says is kept where no mpirun and no cut link can take it away.
exec "$@" 2> {0}/rank-$OMPI_COMM_WORLD_RANK.err
"""


@dataclass
class Schedule:
    number: int
    transport: str
    way: str
    ranks: int
    delay: float
    loss: float
    event: str
    moment: float
    victim: int
    tokens: int

    def __str__(self) -> str:
        link = f" delay {self.delay * 1000:.0f} ms loss {self.loss:.1%}" if self.transport == "mpi" else ""
        who = f" rank {self.victim}" if self.event in ("killed", "stopped") else ""
        when = f" at {self.moment:.2f}s" if self.event != "nothing" else ""
        return f"{self.transport} --{self.way} {self.ranks}, {self.tokens} tokens{link}: {self.event}{who}{when}"


@dataclass
class Outcome:
    schedule: Schedule
    ended: str = ""
    seconds: float = 0.0
    happened: bool = False
    # Whether the event came before the ranks had found each other, which rank 0 tells.
    joining: bool = False
    # From the event to the end of the last rank, and whether mpirun had to be ended.
    after: float = 0.0
    launcher_stayed: bool = False
    hangs: bool = False
    staying: list[int] = field(default_factory=list)
    code: int | None = None
    out: str = ""
    err: str = ""
    launcher_err: str = ""
    failures: list[str] = field(default_factory=list)
    files_of_open_mpi: list[str] = field(default_factory=list)

    def time_to_end(self, deadline: float) -> float:
        """From an event to the end: the ranks wait longer for those that have not come to the start yet."""
        return deadline + (JOINING if self.joining else 0.0)


def drawn(number: int, chance: random.Random) -> Schedule:
    transport = chance.choices(["mpi", "local"], [7, 3])[0]
    way, ranks = chance.choice(["tp", "pp"]), chance.choices([2, 4], [6, 1])[0]
    far = transport == "mpi"
    delay = chance.choice([0.01, 0.0]) if far else 0.0
    loss = chance.uniform(0, 0.02) if far else 0.0
    event = chance.choice(["nothing", "killed", "stopped"] + (["cut", "blip"] if far else []))
    tokens, span = WORK[transport, way, delay > 0]
    moment = chance.uniform(0, span)
    return Schedule(number, transport, way, ranks, delay, loss, event, moment, chance.randrange(ranks), tokens)


class Runner:
    """Runs schedules of one program over one link, with a folder for what they say."""

    def __init__(self, options: argparse.Namespace, link: Link, folder: Path) -> None:
        self.program = str(Path(options.program).resolve())
        self.options, self.link, self.folder = options, link, folder
        self.mark = f"{os.getpid()}-"
        self.deadline = options.rank_time + options.slack
        self.right: list[int] = []
        self.script("agent", AGENT)
        self.script("rank", RANK.format(folder))

    def script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def environment(self, mark: str) -> dict[str, str]:
        # What the user has set for the program is not what is shown.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("YIRAGE_")}
        return kept | {"YIRAGE_WEIGHT_CACHE": "off", MARK: mark, "TMPDIR": str(self.folder)}

    def words(self, tokens: int) -> list[str]:
        fixed = "--prompt-ids 1,2,3 --temperature 0 --precision exact -t 1 --ignore-eos --context 30000 --json".split()
        return [self.program, "run", "-m", str(self.options.model), "-n", str(tokens), *fixed]

    def command(self, of: Schedule) -> list[str]:
        run = [*self.words(of.tokens), "--rank-time", str(self.options.rank_time)]
        if of.transport == "local":
            return [*run, f"--{of.way}", str(of.ranks)]
        run += ["--launch", "mpi", *(["--pp", str(of.ranks)] if of.way == "pp" else [])]
        hosts = ",".join(f"{address}:{of.ranks // 2}" for address in ADDRESSES)
        mpirun = f"{self.options.mpirun} --allow-run-as-root --oversubscribe --bind-to none --host {hosts}"
        # `ob1` is the only one that uses `btl`; others would look for devices first.
        mca = f"--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include {SUBNET} --mca oob_tcp_if_include {SUBNET}"
        exported = f"-n {of.ranks} -x {MARK} -x YIRAGE_WEIGHT_CACHE --mca plm_rsh_agent {self.folder}/agent"
        inside = ["ip", "netns", "exec", NAMES[0], "unshare", "--uts"]
        named = ["sh", "-c", f'hostname {NAMES[0]}; exec "$@"', "-"]
        return [*inside, *named, *f"{mpirun} {mca} {exported} {self.folder}/rank".split(), *run]

    def one_rank(self) -> None:
        """The right tokens: as many as any schedule asks for. Greedy, so fewer are their beginning."""
        most = max(tokens for tokens, _ in WORK.values())
        words, environment = self.words(most), self.environment(self.mark)
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(f"one rank fails: {ran.stderr}")
        self.right = json.loads(ran.stdout)["tokens"]

    def happen(self, of: Schedule, ranks: dict[int, int]) -> bool:
        """Whether there was something left for it to happen to."""
        if not all(state(process) for process in ranks.values()):
            return False
        if of.event in ("cut", "blip"):
            self.link.cut = True
        if of.event == "blip":
            time.sleep(BLIP)
            self.link.cut = False
        if of.event in ("killed", "stopped"):
            os.kill(ranks[of.victim], signal.SIGKILL if of.event == "killed" else signal.SIGSTOP)
        if self.is_leader_stopped(of):
            time.sleep(self.options.rank_time + 1)
            os.kill(ranks[0], signal.SIGCONT)
        return of.event != "nothing"

    def is_leader_stopped(self, of: Schedule) -> bool:
        """Rank 0 that has started the others is the user's own, as by Ctrl-Z: only the user can let it go on."""
        return of.transport == "local" and of.event == "stopped" and of.victim == 0

    def joining(self, of: Schedule) -> bool:
        said = self.folder.glob("rank-*.err") if of.transport == "mpi" else [self.folder / "err"]
        return not any(b" ranks of " in path.read_bytes() for path in said)

    def watch(self, of: Schedule, child: subprocess.Popen[bytes], mark: str, outcome: Outcome) -> None:
        """From the start to the end of the last rank and of what started them."""
        begun = started = time.monotonic()
        ranks: dict[int, int] = {}
        at = last_rank = None
        while child.poll() is None or any(map(state, ranks.values())):
            time.sleep(0.01)
            now = time.monotonic()
            if len(ranks) < of.ranks:
                ranks, started = ranks_of(self.program, mark), now
            elif not any(map(state, ranks.values())):
                last_rank = last_rank or now
                if now - last_rank > (TIDY_WHEN_CUT if self.link.cut else TIDY):
                    outcome.launcher_stayed = True
                    break
            elif at is None and now - started >= of.moment:
                at, outcome.joining = now, self.joining(of)
                outcome.happened = self.happen(of, ranks)
                # What the leader's pause takes is not counted.
                at = time.monotonic() if self.is_leader_stopped(of) else at
            lasting = outcome.happened and of.event in LASTING
            limit = outcome.time_to_end(self.deadline) + LIMIT_ABOVE_DEADLINE
            if now - begun > LIMIT or (lasting and now - at > limit):
                outcome.hangs = True
                outcome.staying = sorted(rank for rank, process in ranks.items() if state(process))
                states = ", ".join(f"rank {rank} ({state(ranks[rank])})" for rank in outcome.staying)
                outcome.failures.append(f"hangs after {now - begun:.0f}s: {states or 'what started the ranks'}")
                break
        ended = last_rank or time.monotonic()
        outcome.seconds, outcome.after = time.monotonic() - begun, ended - at if at and outcome.happened else 0.0

    def run(self, of: Schedule) -> Outcome:
        outcome, mark = Outcome(of), f"{self.mark}{of.number}."
        self.link.be(of.delay, of.loss)
        out, err = self.folder / "out", self.folder / "err"
        before = set(os.listdir("/dev/shm"))
        for old in self.folder.glob("rank-*"):
            old.unlink()
        with out.open("wb") as to, err.open("wb") as errors:
            child = subprocess.Popen(self.command(of), env=self.environment(mark), stdin=subprocess.DEVNULL,
                                     stdout=to, stderr=errors, start_new_session=True)
        try:
            self.watch(of, child, mark, outcome)
            if not outcome.hangs:
                self.look_for_what_is_left(mark, before, outcome)
        finally:
            end_all(mark)
            child.wait()
        outcome.code = None if outcome.launcher_stayed or outcome.hangs else child.returncode
        outcome.out, outcome.launcher_err = out.read_text(errors="replace"), err.read_text(errors="replace")
        said = [path.read_text(errors="replace") for path in sorted(self.folder.glob("rank-*.err"))]
        outcome.err = "".join(said) if of.transport == "mpi" else outcome.launcher_err
        return outcome

    def look_for_what_is_left(self, mark: str, before: set[str], outcome: Outcome) -> None:
        """Whatever is there one second after the end stays."""
        end = time.monotonic() + 1
        while time.monotonic() < end and (marked(mark) or set(os.listdir("/dev/shm")) - before):
            time.sleep(0.02)
        ranks = set(ranks_of(self.program, mark).values())
        for process in marked(mark):
            if process in ranks or not outcome.launcher_stayed:
                outcome.failures.append(f"a process is left: {about(process)}")
        for name in sorted(set(os.listdir("/dev/shm")) - before):
            if OF_OPEN_MPI.search(name):
                outcome.files_of_open_mpi.append(name)
            else:
                outcome.failures.append(f"a file is left: /dev/shm/{name}")


def is_right(of: Outcome, right: list[int]) -> bool:
    try:
        return bool(json.loads(of.out)["tokens"] == right[: of.schedule.tokens])
    except (ValueError, KeyError):
        return False


def how(of: Outcome, right: list[int]) -> str:
    """How a schedule ended, in a few words that the table counts; those it may not end with go to the failures."""
    failed = of.failures.append
    if BROKEN.search(of.err + of.launcher_err):
        failed("a panic or an inner error")
    if of.hangs:
        alone = of.schedule.event == "stopped" and of.staying == [of.schedule.victim]
        if of.schedule.transport != "mpi" or not alone or not is_right(of, right):
            return "hang"
        # Stopped on its way out, behind the last word of the others: it is in nobody's hands but mpirun's, which waits.
        of.failures.clear()
        return "right tokens, mpirun waits for the stopped rank"
    # Where mpirun waits over a cut link, its exit code is not known; the answer is, when it came before the cut.
    if of.code == 0 or (of.launcher_stayed and is_right(of, right)):
        if is_right(of, right):
            return "right tokens"
        failed("exit code 0 with other tokens")
        return "wrong tokens"
    if of.schedule.event == "nothing":
        failed("nothing happened, and yet it did not give the tokens")
    if TYPED.search(of.err):
        return "typed error"
    if of.happened and of.schedule.event == "killed":
        if of.schedule.transport == "mpi" and "on signal 9" in of.launcher_err:
            return "ended by mpirun"
        # Rank 0 of ranks that it has started is the one that speaks.
        if of.code == -signal.SIGKILL and of.schedule.victim == 0:
            return "killed itself"
    failed("no error in the program's own words")
    return "no word"


def judge(of: Outcome, right: list[int], deadline: float) -> None:
    of.ended = how(of, right)
    if of.launcher_stayed and of.schedule.event != "cut":
        of.failures.append("mpirun does not end though all ranks have")
    within = of.time_to_end(deadline)
    if of.schedule.event in LASTING and of.after > within and not of.hangs:
        of.failures.append(f"ends {of.after:.1f}s after the event, not within {within:.1f}s")


def report(outcomes: list[Outcome], planned: int, seconds: float) -> dict[str, Any]:
    rows: dict[tuple[str, str, str], list[Outcome]] = {}
    for one in outcomes:
        event = one.schedule.event if one.happened or one.schedule.event == "nothing" else "(too late)"
        event += " while joining" if one.happened and one.joining else ""
        rows.setdefault((one.schedule.transport, event, one.ended), []).append(one)
    table = [dict(transport=transport, event=event, ended=ended, schedules=len(of),
                  slowest_after_event=round(max(one.after for one in of), 2),
                  mpirun_stayed=sum(one.launcher_stayed for one in of),
                  failed=sum(bool(one.failures) for one in of))
             for (transport, event, ended), of in sorted(rows.items())]
    failed = [one for one in outcomes if one.failures]
    return dict(planned=planned, schedules=len(outcomes), failed=len(failed), seconds=round(seconds, 1), table=table,
                slowest_after_event=round(max((one.after for one in outcomes), default=0.0), 2),
                files_of_open_mpi=sorted({name for one in outcomes for name in one.files_of_open_mpi}),
                failures=[asdict(one) for one in failed])


def show(of: dict[str, Any]) -> None:
    columns = ["transport", "event", "ended", "schedules", "slowest_after_event", "mpirun_stayed", "failed"]
    rows = [columns, *([str(row[column]) for column in columns] for row in of["table"])]
    widths = [max(len(row[at]) for row in rows) for at in range(len(columns))]
    for row in rows:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip())
    print(f"{of['schedules']} of {of['planned']} schedules in {of['seconds']}s, {of['failed']} failed; "
          f"slowest end {of['slowest_after_event']}s after an event")
    if of["files_of_open_mpi"]:
        print(f"files of Open MPI left in /dev/shm: {' '.join(of['files_of_open_mpi'])}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the yirage to run")
    parser.add_argument("--model", default=MODEL, help="a model with 4 KV heads and 4 layers at least")
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--numbers", default="0-", metavar="A-B", help="run only these of the schedules: 7-7")
    parser.add_argument("--rank-time", type=float, default=3.0, help="the deadline of the ranks, in seconds")
    parser.add_argument("--slack", type=float, default=4.0, help="seconds above the deadline that an end may take")
    parser.add_argument("--mpirun", default="mpirun.openmpi")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    return parser.parse_args()


def tell(of: Outcome) -> None:
    """One line on standard error, and all that was said where it failed."""
    when = " while joining" if of.happened and of.joining else ""
    when = when if of.happened or of.schedule.event == "nothing" else " (too late)"
    after = f", {of.after:.2f}s after the event" if of.happened else ""
    stayed = ", mpirun stayed" if of.launcher_stayed else ""
    lines = [f"{of.schedule.number}: {of.schedule}{when} -> {of.ended}{after}, {of.seconds:.1f}s{stayed}"]
    if of.failures:
        lines += [f"  FAILED: {failure}" for failure in of.failures]
        lines += [f"  exit code {of.code}", of.err[-2000:], of.launcher_err[-1000:]]
    print("\n".join(lines), file=sys.stderr, flush=True)


def run_all(options: argparse.Namespace, runner: Runner, outcomes: list[Outcome]) -> None:
    chance = random.Random(options.seed)
    schedules = [drawn(number, chance) for number in range(options.schedules)]
    first, _, last = options.numbers.partition("-")
    for schedule in schedules[int(first):int(last or options.schedules) + 1]:
        outcome = runner.run(schedule)
        judge(outcome, runner.right, runner.deadline)
        outcomes.append(outcome)
        tell(outcome)


def main() -> int:
    options = arguments()
    if os.geteuid() != 0:
        print("network namespaces need root", file=sys.stderr)
        return 3
    # Each way to end this goes by the `finally`s, which leave nothing.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    leave_the_mounts_of_others()
    outcomes: list[Outcome] = []
    begun, interrupted = time.monotonic(), False
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder, Link(options.seed) as link:
        runner = Runner(options, link, Path(folder))
        try:
            runner.one_rank()
            run_all(options, runner, outcomes)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            end_all(runner.mark)
    result = report(outcomes, options.schedules, time.monotonic() - begun)
    if options.json:
        print(json.dumps(result))
    else:
        show(result)
    return 130 if interrupted else int(bool(result["failed"]))


if __name__ == "__main__":
    sys.exit(main())
