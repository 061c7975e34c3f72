"""``python -m yirage.ranks -n 2 script.py`` starts a program as ranks of this machine, which find each other by themselves."""

from __future__ import annotations

import argparse
import sys
from typing import Sequence

from . import _yirage


def run(ranks: int, words: Sequence[str], deadline: float = 30.0) -> list[int]:
    """Starts a command as so many processes and waits for all: the exit code of each, 128 and more of one that a signal ended.

    ``deadline`` is how many seconds each wait of a rank for another lasts at most.

    Raises:
        RanksError: a command that cannot be started. OptionError: no command, or another deadline than there can be.
    """
    return _yirage.run_ranks(ranks, list(words), deadline)


def main() -> int:
    """The command: its exit code is that of the first rank that has failed."""
    parser = argparse.ArgumentParser(
        prog="python -m yirage.ranks",
        description="Starts a Python program as ranks of this machine. A rank is killed with this process.",
    )
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many")
    parser.add_argument("--deadline", type=float, default=30.0, help="seconds that a rank waits for another (30)")
    parser.add_argument("program", help="the Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args()
    codes = run(given.ranks, [sys.executable, given.program, *given.arguments], given.deadline)
    for rank, code in enumerate(codes):
        if code:
            print(f"rank {rank} has ended with {code}", file=sys.stderr)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
