"""The same interfaces through npm's clients: openai, @anthropic-ai/sdk, ollama and the AI SDK, run by node."""

import json
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent / "npm"
CLIENTS = ["openai", "anthropic", "ollama", "ai"]


def installed(home):
    """The folder with the checks and the libraries, which are installed where they are not there."""
    if not shutil.which("npm"):
        raise RuntimeError("npm is not here; Debian has it as the package npm")
    home.mkdir(parents=True, exist_ok=True)
    mark, wanted = home / "libraries", (HERE / "package.json").read_text()
    for file in HERE.iterdir():
        shutil.copy(file, home / file.name)
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=home, check=True)
        mark.write_text(wanted)
    return home


def checks(server, home, report):
    """Runs the checks of every client; each is a row of the report."""
    try:
        folder = installed(home)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        report.add("npm: its libraries", False, error, 0)
        return
    # The libraries read keys and addresses of the user's own from there.
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    for client in CLIENTS:
        words = ["node", "run.mjs", client, server.url]
        done = subprocess.run(words, cwd=folder, env=kept, stdout=subprocess.PIPE, text=True, timeout=600)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows:
            report.add(f"npm {client}: {row['name']}", row["good"], row["said"], row["seconds"])
        if not rows or (done.returncode != 0 and all(row["good"] for row in rows)):
            report.add(f"npm {client}: it ran", False, f"exit code {done.returncode}", 0)
