#!/usr/bin/env python3
"""Looks at backends, chooses one, tunes, times and tests it: `yirage backend` by the arguments of YiRage's manager."""

import argparse
import sys

try:
    import yirage as yr
    from yirage import command
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("yirage_backend_manager.py: the package yirage is not installed: run `pip install .` in the folder of its repository")


def arguments(given):
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("info", help="every device that is here, and why the other backends have none")
    optimize = kinds.add_parser("optimize", help="which settings suit a device, and why")
    optimize.add_argument("--backend", default="auto")
    optimize.add_argument("--apply", action="store_true", help="keep them for later starts")
    optimize.add_argument("--output", metavar="FILE", help="write them as JSON, too")
    benchmark = kinds.add_parser("benchmark", help="time ops on every backend that is here")
    benchmark.add_argument("--duration", default="10", metavar="S", help="seconds that all timed steps take together")
    benchmark.add_argument("--backends", nargs="*", default=[], metavar="NAME")
    chosen = kinds.add_parser("set", help="keep a backend as the default of later starts")
    chosen.add_argument("backend")
    kinds.add_parser("reset", help="forget the backend that was kept")
    config = kinds.add_parser("config", help="the settings that are kept, to a file and back")
    config.add_argument("action", choices=["save", "load", "show"])
    config.add_argument("file", nargs="?")
    test = kinds.add_parser("test", help="compare a device's results with the reference")
    test.add_argument("backend", nargs="?", default="auto")
    test.add_argument("--quick", action="store_true", help="each case in one way of several")
    for each in kinds.choices.values():
        each.add_argument("--json", action="store_true", help="one JSON document")
    return parser.parse_args(given)


def words(asked):
    """The arguments of the command."""
    match asked.kind:
        case "info":
            return ["devices"]
        case "optimize":
            return ["backend", "optimize", asked.backend, *(["--apply"] if asked.apply else [])]
        case "benchmark":
            return ["backend", "benchmark", "--duration", asked.duration, *asked.backends]
        case "set":
            return ["backend", "set", asked.backend]
        case "reset":
            return ["backend", "reset"]
        case "config":
            return ["backend", "config", asked.action, *([asked.file] if asked.file else [])]
        case "test":
            return ["backend", "test", asked.backend, *(["--quick"] if asked.quick else [])]


def main(given=None):
    asked = arguments(given)
    ran = command.run(*words(asked), *(["--json"] if asked.json else []))
    if ran.returncode == 0 and getattr(asked, "output", None):
        yr.BackendOptimizer().save_config(asked.output, backend=asked.backend)
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
