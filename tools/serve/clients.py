#!/usr/bin/env python3
"""Other people's clients on a server of ours: the libraries openai, anthropic and ollama drive every endpoint, and so do
those of npm with the AI SDK; Chromium drives the page; schemathesis tries /openapi.json; strict JSON is validated by
jsonschema, and 256 streams at once say what each says alone.

    cargo build --release --locked
    tools/serve/clients.py --yirage target/release/yirage            minutes
    tools/serve/clients.py --yirage target/release/yirage --all      as a release is checked: most of an hour
    tools/serve/clients.py --yirage target/release/yirage --only strict,streams
    tools/serve/clients.py --yirage target/release/yirage --only strict --real model.gguf

What it installs goes into target/ci-tools; it needs Python 3.10 with venv, node with npm, and a way to PyPI and to npm's
registry. It ends with a table; the exit code is 1 where a check failed. Logs of the server and of schemathesis lie in the
folder that is named at the end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARIES = ["openai>=2", "anthropic>=0.77", "ollama>=0.6", "schemathesis>=4,<5", "jsonschema[format]>=4.23", "httpx",
             "playwright"]
PARTS = ["openai", "suite", "anthropic", "ollama", "plain", "npm", "page", "conforms", "strict", "streams"]


def tools():
    """The folder of what is installed for checks."""
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "ci-tools"


def in_environment():
    """Goes on in an environment that has the libraries, which is made where it is not there."""
    home = tools() / "clients"
    python, mark = home / "bin" / "python", home / "libraries"
    wanted = "\n".join(LIBRARIES)
    if not mark.exists() or mark.read_text() != wanted:
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *LIBRARIES], check=True)
        mark.write_text(wanted)
    if Path(sys.prefix).resolve() != home.resolve():
        os.execv(python, [str(python), *sys.argv])


def clients(options, models, work, report):
    import anthropic_client
    import ollama_client
    import openai_client
    import openai_suite
    import npm_clients
    import page_client
    import plain_client
    from clock import jumps
    from conforms import conforms
    from server import Server

    kinds = {"openai": openai_client, "anthropic": anthropic_client, "ollama": ollama_client, "plain": plain_client}
    served = {name: path for name, path in models.items() if name != "fill"}
    with Server(options.yirage, served, work) as server:
        for kind, module in kinds.items():
            for check in module.CHECKS if kind in options.only else []:
                report.check(f"{kind}: {check.__name__}", check, server)
        if "npm" in options.only:
            npm_clients.checks(server, tools() / "clients-npm", report)
        if "page" in options.only:
            report.check("the page, by keyboard and for all", page_client.page, server, tools() / "clients-npm", work)
    report.check("the server ends in order", ended, server)
    if "suite" in options.only:
        report.check("openai: its own tests", openai_suite.suite, options.yirage, models, work)
    if "plain" in options.only:
        report.check("plain: a clock that jumps", jumps, options.yirage, served, work)
    if "conforms" in options.only:
        # Short answers: what is tried is what is taken and how it is answered.
        with Server(options.yirage, served, work, "--context", "128") as server:
            report.check("conforms: schemathesis", conforms, server, work, 300 if options.all else 30)


def ended(server):
    assert server.code == 0, f"exit code {server.code}"


def load(options, models, work, report):
    import strict
    import streams
    from server import Server

    generators = {name: models[name] for name in ("story", "random")}
    if options.real:
        generators["real"] = options.real
    with Server(options.yirage, generators, work, "--max-seqs", "32", "--max-queued", "512") as server:
        if "strict" in options.only:
            count = options.samples or (10_000 if options.all else 200)
            for name in generators:
                report.check(f"strict: {count} samples of {name}", strict.samples, server, name, count)
            report.check("strict: keywords that cannot be kept", strict.refusals, server)
        if "streams" in options.only:
            report.check("streams: as alone", streams.concurrent, server, 600 if options.all else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yirage", type=lambda path: str(Path(path).resolve()), required=True, help="the program")
    parser.add_argument("--all", action="store_true", help="as many samples and as long as a release is checked")
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS, help=", ".join(PARTS))
    parser.add_argument("--real", type=lambda path: str(Path(path).resolve()), help="a model of yours to sample strict JSON from as well")
    parser.add_argument("--samples", type=int, help="samples of strict JSON from each model")
    options = parser.parse_args()
    if unknown := set(options.only) - set(PARTS):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(PARTS)}")
    in_environment()
    # What is asked is this machine, and settings of the user's own are not those of the libraries.
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_", "OLLAMA_")):
            del os.environ[name]
    import models
    from report import Report

    work = Path(tempfile.mkdtemp(prefix="yirage-clients-"))
    made, report = models.write(work / "models"), Report()
    if {"openai", "suite", "anthropic", "ollama", "plain", "npm", "page", "conforms"} & set(options.only):
        clients(options, made, work, report)
    if {"strict", "streams"} & set(options.only):
        load(options, made, work, report)
    code = report.table()
    print(f"logs: {work}")
    return code


if __name__ == "__main__":
    sys.exit(main())
