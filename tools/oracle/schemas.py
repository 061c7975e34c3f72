"""Answers of schemas by a model that knows nothing, by the PyPI package `jsonschema` with its checker of formats.

    python tools/oracle/schemas.py PROGRAM PATH... [--seeds 100]

PROGRAM is the example `walk_schemas` of crates/yirage-serve. A PATH is a file, or a folder of files, each of which is a
schema or one of JSON Schema's official test suite, of which each case's schema is one. Each answer has to be valid, and none may come to where nothing can
follow. The suite is not part of this repository; `pip install jsonschema` does not have it, its own repository does.
"""

import argparse
import fractions
import json
import pathlib
import subprocess
import sys
from collections import Counter

import jsonschema



def multiple(validator, factor, instance, schema):
    """The package divides doubles: 0.6303 is no multiple of 0.0001 for it."""
    if validator.is_type(instance, "number") and fractions.Fraction(repr(instance)) % fractions.Fraction(repr(factor)):
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {factor!r}")


# The package's `unevaluatedProperties` of 2019-09 does not see that a schema in `additionalProperties` evaluates them.
Draft201909 = jsonschema.validators.extend(
    jsonschema.Draft201909Validator,
    {"unevaluatedProperties": jsonschema.Draft202012Validator.VALIDATORS["unevaluatedProperties"]})
DRAFTS = {"draft4": jsonschema.Draft4Validator, "draft6": jsonschema.Draft6Validator, "draft7": jsonschema.Draft7Validator,
          "draft2019-09": Draft201909, "draft2020-12": jsonschema.Draft202012Validator}
MARKS = {jsonschema.Draft4Validator: "http://json-schema.org/draft-04/schema#",
         jsonschema.Draft6Validator: "http://json-schema.org/draft-06/schema#",
         jsonschema.Draft7Validator: "http://json-schema.org/draft-07/schema#"}


def read(place):
    """Schemas with where they are from and their validator."""
    for path in sorted(place.rglob("*.json")) if place.is_dir() else [place]:
        try:
            data = json.loads(path.read_text())
        except (ValueError, UnicodeDecodeError):
            continue
        draft = next((DRAFTS[part] for part in path.parts if part in DRAFTS), None)
        cases = data if isinstance(data, list) else [{"schema": data, "description": ""}]
        for at, case in enumerate(cases):
            schema = case.get("schema") if isinstance(case, dict) else None
            if not isinstance(schema, dict):
                continue
            checker = jsonschema.validators.validator_for(schema, default=draft or jsonschema.Draft202012Validator)
            checker = Draft201909 if checker is jsonschema.Draft201909Validator else checker
            if checker in MARKS:
                # Without a word of the draft it is of the newest one.
                schema.setdefault("$schema", MARKS[checker])
            yield f"{path}#{at} {case.get('description', '')}", schema, checker


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--bytes", type=int, default=2000)
    parser.add_argument("--refused", action="store_true", help="print what is refused as well")
    options = parser.parse_args()
    schemas = [one for path in options.paths for one in read(path)]
    lines = "".join(json.dumps(schema) + "\n" for _, schema, _ in schemas)
    run = subprocess.run([options.program, str(options.seeds), str(options.bytes)], input=lines, capture_output=True,
                         text=True, check=False)
    said = run.stdout.rstrip("\n").split("\n")
    counts, wrong = Counter(schemas=len(schemas)), 0
    if run.returncode or len(said) != len(schemas):
        wrong += 1
        print(f"ended by {run.returncode} at {schemas[min(len(said), len(schemas) - 1)][0]}: {run.stderr[-600:]}")
    for (name, schema, checker), line in zip(schemas, said):
        one = json.loads(line)
        if "refused" in one:
            counts["refused"] += 1
            if options.refused:
                print("REFUSED", name, one["refused"][:300])
            if one["status"] != 400 or "please report" in one["refused"]:
                wrong += 1
                print("BROKE", name, one)
            continue
        counts["enforced"] += 1
        counts["cut"] += one["cut"]
        if one["cut"] == options.seeds:
            print("NEVER ENDS", name)
        if one["stuck"]:
            wrong += 1
            print("STUCK", name, json.dumps(schema)[:500], one["stuck"][0][-200:])
        judge = jsonschema.validators.extend(checker, {"multipleOf": multiple})
        validator = judge(schema, format_checker=checker.FORMAT_CHECKER)
        for answer in one["answers"]:
            counts["answers"] += 1
            try:
                error = next(iter(validator.iter_errors(json.loads(answer))), None)
            except Exception as broken:  # the validator's own: references to elsewhere, patterns of another dialect
                counts["not judged"] += 1
                if options.refused:
                    print("NOT JUDGED", name, repr(broken)[:200])
                continue
            if error:
                wrong += 1
                print("INVALID", name, json.dumps(schema)[:500], answer[:300], "|", error.message[:200])
                break
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"- {wrong} schemas wrong")
    sys.exit(wrong > 0)


main()
