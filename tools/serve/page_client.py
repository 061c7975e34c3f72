"""The page at `/` as its users see it: tools/page/drive.py in Debian's Chromium, with axe-core of npm."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import npm_clients

DRIVE = Path(__file__).resolve().parents[1] / "page" / "drive.py"


def browser():
    """The program of Debian's Chromium, which is installed where that is allowed."""
    if not (found := shutil.which("chromium")) and os.geteuid() == 0 and shutil.which("apt-get"):
        # Lists of packages that are old name files that are gone.
        for words in [["update"], ["install", "--yes", "--no-install-recommends", "chromium"]]:
            subprocess.run(["apt-get", *words], stdout=subprocess.DEVNULL, check=True)
        found = shutil.which("chromium")
    if not found:
        raise RuntimeError("Chromium is not here; Debian has it as the package chromium")
    return found


def page(server, home, work):
    axe = npm_clients.installed(home) / "node_modules" / "axe-core" / "axe.min.js"
    words = [sys.executable, DRIVE, "--url", f"{server.url}/", "--browser", browser(), "--axe", axe, "--screens",
             work / "page"]
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0, f"exit code {done.returncode} behind: {', '.join(done.stdout.splitlines()[-1:])}"
    return f"{len(done.stdout.splitlines())} steps, pictures in {work / 'page'}"
