#!/usr/bin/env python3
"""Renders chat templates with Python's jinja2, as transformers sets it up, and with yirage, and counts what differs.

Usage: pip install jinja2==3.1.6; cargo build -p yirage-model --example render_chat
       python3 tools/oracle/templates.py TEMPLATE... [--conversations FILE] [--program FILE] [--golden FILE]
                                         [--transformers]

A TEMPLATE is a file of Jinja, or a folder of them. Without any, those of crates/yirage-model/tests/golden/templates are
rendered. Each conversation is rendered twice: as it was sent, and in the shape that the template reads; for the second,
jinja2 is given the messages that yirage's `Capabilities::adapt` made. With --transformers that package's own function renders
each as well, which gives thoughts every name that they have somewhere: what is in its shape has to be equal. With --golden the second renderings of jinja2 and
the shapes are written to FILE, which the test `chat_shapes` reads. Ends with 1 where anything differs.
"""

import argparse
import datetime
import functools
import json
import pathlib
import subprocess
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = ROOT / "crates/yirage-model/tests/golden/templates"


class Generation(Extension):
    """`{% generation %}`, by which transformers marks what a model wrote; a rendering shows nothing of it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return jinja2.nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    # The example's clock stands at its beginning.
    env.globals["strftime_now"] = datetime.datetime.fromtimestamp(0, datetime.timezone.utc).strftime
    return env


@functools.cache
def compiled(env, template):
    return env.from_string(template)


def by_jinja2(env, request):
    """The text, or None where jinja2 refuses."""
    try:
        return compiled(env, request["template"]).render(
            messages=request["messages"], tools=request.get("tools"), documents=None, bos_token="<s>",
            eos_token="</s>", add_generation_prompt=True)
    except Exception:  # what Python raises within a template is of any kind
        return None


def by_transformers(request):
    """The text of transformers' own renderer, or None where it refuses."""
    from transformers.utils import chat_template_utils

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(0, datetime.timezone.utc)

    chat_template_utils.datetime = Clock
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [request["messages"]], tools=request.get("tools"), chat_template=request["template"],
            add_generation_prompt=True, bos_token="<s>", eos_token="</s>")
        return texts[0]
    except Exception:  # what Python raises within a template is of any kind
        return None


def by_yirage(program, requests):
    text = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("templates", nargs="*", type=pathlib.Path, default=[OWN])
    parser.add_argument("--conversations", type=pathlib.Path, default=OWN / "conversations.json")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/examples/render_chat")
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--transformers", action="store_true")
    args = parser.parse_args()

    files = [f for path in args.templates for f in (sorted(path.glob("*.jinja")) if path.is_dir() else [path])]
    conversations = json.loads(args.conversations.read_text())
    asked = [(file, talk, {"template": file.read_text(), "messages": talk["messages"], "tools": talk.get("tools"),
                           "adapt": adapt})
             for adapt in (False, True) for file in files for talk in conversations]
    env, counts, golden = environment(), {"same": 0, "both refuse": 0, "same by transformers": 0, "differs": 0}, []
    for (file, talk, request), found in zip(asked, by_yirage(args.program, [r for _, _, r in asked])):
        if "messages" not in found:
            sys.exit(f"{file}: {found['error']}")
        given = dict(request, messages=found["messages"], tools=found["tools"])
        wanted, text = by_jinja2(env, given), found.get("text")
        same = wanted == text
        counts["differs" if not same else "same" if text is not None else "both refuse"] += 1
        if not same:
            shape = "in its shape" if request["adapt"] else "as sent"
            print(f"{file.name}, {talk['name']}, {shape}:\n  jinja2 {wanted!r}\n  yirage {text or found['error']!r}")
        if args.transformers and request["adapt"]:
            theirs = by_transformers(given)
            counts["same by transformers" if theirs == text else "differs"] += 1
            if theirs != text:
                print(f"{file.name}, {talk['name']}:\n  transformers {theirs!r}\n  yirage {text or found['error']!r}")
        if request["adapt"]:
            golden.append({"template": file.name, "conversation": talk["name"], "messages": found["messages"],
                           "rendered": wanted})
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    if args.golden:
        args.golden.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    main()
