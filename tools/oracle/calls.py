#!/usr/bin/env python3
"""Calls of tools that transformers renders, as the server's parsers read them.

Usage: pip install transformers==5.24.0 jinja2==3.1.6; cargo build -p yirage-serve --example read_calls
       python3 tools/oracle/calls.py TEMPLATE... --program FILE [--list]

A TEMPLATE is a file of Jinja, or a folder of them. Transformers' own function renders a question with two tools; where both
tools reach the prompt the server has to say yes to `tools`. It then renders answers with one and two calls, with and without
a text before them; where the call is in what it writes behind the question, the server's parser has to read that call, whole
and in pieces. Ends with 1 where one is not read. With --list each template is printed with its form, or why there is none.
"""

import argparse
import json
import pathlib
import subprocess
import sys
from collections import Counter

QUESTION = "when-is-high-water-9137"

# Templates with tools whose calls are not read, so that `tools` is a 400 for them: what their parser would have to know. One
# that is listed and read is an error too, so that the list stays true.
REFUSED = {
    "Kimi-K3": "what is said to the user stands between marks as well",
    "MiniMax-M3": "arguments are elements within elements, each bracket behind a mark",
    "openbmb-MiniCPM5-1B": "texts with signs of markup stand in CDATA",
    "muse-glimmer": "a call is a message to a tool, with elements in it",
}


def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": f"{name} of a harbour", "parameters": parameters}}


TOOLS = [tool("get_tides", harbour={"type": "string", "description": "where"}, days={"type": "integer", "description": "how long"}),
         tool("count_gulls", beach={"type": "string", "description": "where"}, hungry={"type": "boolean", "description": "which"},
              at={"type": "array", "items": {"type": "number"}, "description": "place"})]
CALLS = [("get_tides", {"harbour": "Zürich \"See\" \U0001f30a", "days": 31}),
         ("count_gulls", {"beach": "the {b} & <c>", "hungry": True, "at": [1.5, -2]})]


def rendered(template, messages, **more):
    """The text of transformers' own renderer, or None where it refuses."""
    from transformers.utils import chat_template_utils

    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [messages], tools=TOOLS, chat_template=template, bos_token="<s>", eos_token="</s>", **more)
        return texts[0]
    except Exception:  # what Python raises within a template is of any kind
        return None


def answers(template):
    """What a template writes as an assistant's answers with calls, and which calls these are."""
    question = [{"role": "user", "content": QUESTION}]
    prompt = rendered(template, question, add_generation_prompt=True)
    if prompt is None:
        return
    for count in (1, 2):
        for said in ("I look.", None, ""):
            for named in (False, True):
                # As text only where objects are not shown: the other way round is no answer of a model.
                for as_text in (False, True):
                    calls = [{"id": f"functions.{name}:{at}" if named else f"a1B2c3D4{at}", "type": "function",
                              "function": {"name": name, "arguments": json.dumps(given, ensure_ascii=False) if as_text else given}}
                             for at, (name, given) in enumerate(CALLS[:count])]
                    reply = [{"role": "assistant", "content": said, "tool_calls": calls}]
                    results = [{"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": "04:12"}
                               for call in calls]
                    text = rendered(template, question + reply, add_generation_prompt=False)
                    if text is None:
                        text = rendered(template, question + reply + results, add_generation_prompt=False)
                        text = text and text.split("04:12")[0]
                    if text and QUESTION in text and holds(behind(text, prompt), CALLS[:count]):
                        yield said, count, behind(text, prompt)
                        break


def behind(text, prompt):
    """What the assistant writes: what is not the prompt's."""
    same = next((at for at, (a, b) in enumerate(zip(text, prompt)) if a != b), min(len(text), len(prompt)))
    # Two marks may begin alike.
    if text.rfind("<", 0, same) > text.rfind(">", 0, same):
        same = text.rfind("<", 0, same)
    return text[max(same, text.rindex(QUESTION) + len(QUESTION)):]


def holds(text, calls):
    """Whether names and values stand in a text."""
    flat = text.replace("\\u00fc", "ü").replace("\\\"", "\"")
    return all(name in text and all(str(value) in flat for value in given.values() if isinstance(value, (int, str)) and value is not True)
               for name, given in calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("templates", nargs="+", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    files = [f for path in options.templates for f in (sorted(path.glob("*.jinja")) if path.is_dir() else [path])]
    asked, lines = [], []
    for file in files:
        template = file.read_text()
        prompt = rendered(template, [{"role": "user", "content": QUESTION}], add_generation_prompt=True)
        shown = prompt is not None and all(one["function"]["name"] in prompt for one in TOOLS)
        found = list(answers(template))
        asked.append((file, shown, found))
        lines.append(json.dumps({"template": template, "tools": TOOLS, "texts": [text for _, _, text in found]}) + "\n")
    done = subprocess.run([options.program], input="".join(lines), capture_output=True, text=True, check=True)
    counts, wrong = Counter(templates=len(files)), 0
    for (file, shown, found), line in zip(asked, done.stdout.rstrip("\n").split("\n")):
        answer = json.loads(line)
        form = answer.get("form")
        counts["shown tools"] += shown
        counts["with a form"] += form is not None
        if options.list:
            print(f"{file.name}: {form}; {'shows' if shown else 'does not show'} tools, {len(found)} answers with calls")
        listed = REFUSED.get(file.stem)
        if "error" in answer or (shown and form is None) != (listed is not None):
            wrong += 1
            print(f"REFUSED {file.name}: {answer}; listed: {listed}")
            continue
        counts["refused with a reason"] += listed is not None
        if not (shown and form):
            continue
        counts["answers"] += len(found)
        for (said, count, text), read in zip(found, answer["read"]):
            calls = [(call["name"], loaded(call["arguments"])) for call in read["calls"]]
            if calls != CALLS[:count]:
                wrong += 1
                print(f"WRONG {file.name} ({form}): {text!r} is read as {read}")
                break
            counts["calls read"] += count
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"- {wrong} templates wrong")
    sys.exit(wrong > 0)


def loaded(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
