"""Models built of layer methods, with the weights of the repository's tiny models, and what transformers says of them."""

import json
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "crates/yirage-testkit/fixtures/tiny"
MASK = (1 << 64) - 1


def golden(name):
    """The configuration of a tiny model, the recipes of its tensors, and cases with transformers' tokens."""
    return json.loads((TINY / f"{name}.json").read_text())


def fnv1a(text):
    code = 0xCBF29CE484222325
    for byte in text.encode():
        code = (code ^ byte) * 0x100000001B3 & MASK
    return code


def splitmix(seed, at):
    """Element `at` of the counter-based generator: the finalizer of SplitMix64."""
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + (at + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
