"""The ``yirage`` command, which the package installs: ``python -m yirage`` is the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any, NoReturn

from . import _yirage


def run(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own; ``how`` is ``subprocess.run``'s."""
    words = [sys.executable, "-m", "yirage", *arguments]
    ran: subprocess.CompletedProcess[str] = subprocess.run(words, check=False, text=True, **how)
    return ran


def main() -> NoReturn:
    """Becomes the command: this process is its own."""
    # Signals are the command's, as in its program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_yirage.run_command(["yirage", *sys.argv[1:]]))
