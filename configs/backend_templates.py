#!/usr/bin/env python3
"""Templates of settings: list, show, save, recommended, custom."""

import argparse
import json
import sys

try:
    import yirage as yr
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("backend_templates.py: the package yirage is not installed: run `pip install .` in the folder of its repository")


def changes(words):
    """`num_workers=4` and the like."""
    found = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            found[key] = int(value)
        except ValueError:
            raise yr.OptionError(f"{word}: KEY=NUMBER is wanted") from None
    return found


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("list", help="names, and what each is for")
    show = kinds.add_parser("show", help="the settings of one")
    show.add_argument("name")
    save = kinds.add_parser("save", help="write them as JSON")
    save.add_argument("name")
    save.add_argument("file")
    recommended = kinds.add_parser("recommended", help="the one for this machine, or for a kind of work on it")
    recommended.add_argument("work", nargs="?")
    custom = kinds.add_parser("custom", help="the settings of one with changes")
    custom.add_argument("name")
    custom.add_argument("changes", nargs="*", metavar="KEY=NUMBER")
    for each in (show, save, recommended, custom):
        each.add_argument("--backend", help="take the numbers from its device")
    asked = parser.parse_args(given)
    try:
        match asked.kind:
            case "list":
                for name, about in yr.list_templates().items():
                    print(f"{name:20} {about}")
            case "show":
                print(json.dumps(yr.get_template(asked.name, backend=asked.backend), indent=2))
            case "save":
                yr.save_template(asked.file, asked.name, backend=asked.backend)
            case "recommended":
                print(yr.recommended_template(asked.work, backend=asked.backend))
            case "custom":
                made = yr.get_template(asked.name, backend=asked.backend, **changes(asked.changes))
                print(json.dumps(made, indent=2))
    except yr.YirageError as error:
        print(f"backend_templates.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
