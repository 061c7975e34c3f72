"""The ``yirage`` command: where it is, and ``python -m yirage``, which is the command."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
from typing import Any, NoReturn

from .exceptions import Unsupported


def path() -> str:
    """The command's file: the one that was installed with this package, else the one of ``PATH``.

    Raises:
        Unsupported: there is none.
    """
    own = pathlib.Path(sysconfig.get_path("scripts")) / "yirage"
    found = str(own) if own.is_file() else shutil.which("yirage")
    if found is None:
        why = f"it is neither {own} nor on PATH: install the package from its wheel, or put target/release on PATH"
        raise Unsupported(f"the command `yirage` is not supported here: {why}")
    return found


def run(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command with these arguments; ``how`` is ``subprocess.run``'s."""
    ran: subprocess.CompletedProcess[str] = subprocess.run([path(), *arguments], check=False, text=True, **how)
    return ran


def main() -> NoReturn:
    """Becomes the command."""
    os.execv(path(), ["yirage", *sys.argv[1:]])
