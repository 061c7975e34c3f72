"""The files of tiny models, as Hugging Face writes them."""

import base64
import json
import struct

from layer_models import ROOT, golden, state_dict

# The characters that byte-level tokenizers have for the 256 bytes.
PLAIN = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PLAIN]
LETTERS = [chr(byte) if byte in PLAIN else chr(256 + OTHERS.index(byte)) for byte in range(256)]


def safetensors(path, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(values.tobytes() for values in tensors.values()))


def folder(path, name, **changes):
    """The files of a tiny model, with a tokenizer whose tokens are bytes."""
    of = golden(name)
    path.mkdir()
    (path / "config.json").write_text(json.dumps(of["config"] | changes))
    safetensors(path / "model.safetensors", state_dict(of))
    vocabulary = {letter: byte for byte, letter in enumerate(LETTERS)}
    bytes_alone = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": bytes_alone,
        "decoder": bytes_alone,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


def golden_vision(name):
    """A tiny model that reads pictures: as ``golden``, with its other files and its pictures as files."""
    of = json.loads((ROOT / f"crates/yirage-testkit/fixtures/vision/{name}.json").read_text())
    return of | {"pictures": {key: base64.b64decode(data) for key, data in of["pictures"].items()}}


def vision_folder(path, of):
    """The files of a tiny model that reads pictures."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps(of["config"]))
    safetensors(path / "model.safetensors", state_dict(of))
    for name, value in of["files"].items():
        (path / name).write_text(json.dumps(value))
    return path
