"""Whether a run ended as its case allows."""
import json
import re

from case import ERROR, OTHER, SAME

GOOD_CODES = {1, 2, 3, 4}
PANIC = re.compile(rb"panicked at|stack overflow|memory allocation of|core dumped")
# Rust's library says so before the program makes an ordinary end of it.
REFUSED_MEMORY, REFUSED_MEMORY_CODE = b"memory allocation of", 4
# What no terminal should be sent: C0 but tab and line feed, DEL, and C1 as UTF-8.
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
# JSON writes C0 as escapes; the others are harmless inside its strings for a program, which is who reads it.
CONTROL_IN_JSON = re.compile(rb"[\x00-\x08\x0b-\x1f]")


def finding(case, ran, limits, baseline):
    """What is wrong with how `case` ended, in a few words, or None; and how it ended."""
    hurt = crash(ran, limits)
    if hurt:
        return hurt, "finding"
    said_json = "--json" in case.args
    pattern = CONTROL_IN_JSON if said_json else CONTROL
    # An answer is the model's words; whatever else is printed is the program's.
    answers = case.args[:1] in (["run"], ["chat"]) and not said_json
    for name, data in (("output", b"" if answers else ran.out), ("messages", ran.err)):
        control = (pattern if name == "output" else CONTROL).search(data)
        if control:
            return f"control character {control[0]!r} in its {name}", "finding"
    if ran.code in GOOD_CODES:
        if not ran.err.strip() and not case.mute:
            return f"exit {ran.code} without a message", "finding"
        if case.says and case.says.encode() not in ran.err:
            return f"the message does not say {case.says!r}", "finding"
        outcome = ERROR
    elif case.finds and not errors_found(ran.out):
        return "inspect finds nothing wrong with what run refuses", "finding"
    else:
        outcome = OTHER if baseline is None or answer(case, ran.out) != baseline else SAME
    if outcome in case.allow:
        return None, outcome
    wrong = {OTHER: "another answer in silence", SAME: "an answer that should have been refused",
             ERROR: "an error where there is none"}
    return wrong[outcome], "finding"


def errors_found(out):
    """Whether `inspect --json` found an error."""
    return any(found["severity"] == "error" for found in json.loads(out)["lint"])


def crash(ran, limits):
    """Ends that are never right."""
    if ran.killed:
        return ran.killed
    if ran.code < 0:
        return f"killed by signal {-ran.code}"
    if ran.code > 128 or ran.code == 101:
        return f"exit code {ran.code}"
    panic = PANIC.search(ran.err)
    if panic and (panic[0], ran.code) != (REFUSED_MEMORY, REFUSED_MEMORY_CODE):
        return f"abort: {panic[0].decode()}"
    if ran.peak_bytes > limits.memory_bytes:
        return f"memory: {ran.peak_bytes / 2**20:.0f} MiB"
    if ran.code not in GOOD_CODES and ran.code != 0:
        return f"exit code {ran.code}"
    return None


def answer(case, out):
    """What a run said, without what differs from run to run."""
    try:
        value = json.loads(out)
    except (ValueError, RecursionError):
        return out
    return {key: value.get(key) for key in case.keys} if isinstance(value, dict) and "tokens" in value else out
