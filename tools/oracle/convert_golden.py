#!/usr/bin/env python3
"""What llama.cpp's converter makes of the tiny models, for the tests of yirage-convert.

usage: convert_golden.py --source LLAMA_CPP --models FOLDER --out FILE [NAME ...]

LLAMA_CPP is llama.cpp's source tree (PyPI's sdist `llama-cpp-python` has one in `vendor/llama.cpp`). FOLDER has a folder
NAME with config.json and model.safetensors for each tiny model, as the tests write them. Of each model, and each of the
float types: a hash of all tensors (name, type, dimensions and bytes, in the order of the file), and the metadata about
the model itself. Models have no tokenizer, so none is written. Families that the converter does not take are left out,
with a message. Needs torch, numpy and transformers.
"""

import argparse
import hashlib
import json
import pathlib
import sys
import tempfile

TYPES = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "bf16": "MOSTLY_BF16"}


def load(source):
    """The converter's modules, with what an old torch lacks as names alone: no tiny model has such tensors."""
    sys.path[:0] = [str(source), str(source / "gguf-py")]
    import torch

    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "uint16", "uint32", "uint64"):
        if not hasattr(torch, name):
            setattr(torch, name, torch.uint8)
    import conversion
    import gguf
    from conversion import base

    return torch, gguf, base, conversion


def with_vocabulary(folder, copy):
    """The model's files in a folder that says how many tokens there are, and how much of a head rotates: the converters
    of two families look for that."""
    copy.mkdir()
    config = json.loads((folder / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({"rotary_pct": 1.0, **config}))
    for path in folder.iterdir():
        if path.name != "config.json":
            (copy / path.name).symlink_to(path.resolve())
    tokens = {f"t{i}": i for i in range(config.get("vocab_size") or config["text_config"]["vocab_size"])}
    if not (copy / "tokenizer.json").exists():
        (copy / "tokenizer.json").write_text(json.dumps({"model": {"vocab": tokens}, "added_tokens": []}))
    return copy


def convert(modules, folder, kind, out):
    torch, gguf, base, conversion = modules
    config = base.ModelBase.load_hparams(folder, False)
    name = base.get_model_architecture(config, base.ModelType.TEXT)
    model = conversion.get_model_class(name, mmproj=False)
    with torch.inference_mode():
        made = model(folder, getattr(gguf.LlamaFileType, TYPES[kind]), out)
        made.set_vocab = lambda: None
        if hasattr(made, "impl"):
            made.impl.set_vocab = lambda: None
        made.write()


def described(gguf, path):
    reader = gguf.GGUFReader(path)
    hashed = hashlib.sha256()
    # Divisors of frequencies are computed in f32 there, and rounded once here.
    for tensor in (tensor for tensor in reader.tensors if not tensor.name.startswith("rope_freqs")):
        dims = [int(n) for n in reversed(tensor.shape.tolist())]
        hashed.update(f"{tensor.name} {tensor.tensor_type.name} {dims}\n".encode())
        hashed.update(tensor.data.tobytes())
    metadata = {}
    for key, field in reader.fields.items():
        if not key.startswith(("GGUF.", "general.", "tokenizer.")) or key == "general.file_type":
            value = field.contents()
            metadata[key] = value.item() if hasattr(value, "item") else value
    return hashed.hexdigest()[:16], metadata


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    modules = load(options.source)
    found = {path.parent.name: path.parent for path in sorted(options.models.glob("*/config.json"))}
    golden = {}
    for name in options.names or sorted(found):
        of_model = {}
        for kind in TYPES:
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "out.gguf"
                try:
                    convert(modules, with_vocabulary(found[name], out.with_name("model")), kind, out)
                except (Exception, SystemExit) as error:
                    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                    break
                of_model[kind], metadata = described(modules[1], out)
                if kind == "f32":
                    of_model["metadata"] = metadata
        else:
            golden[name] = of_model
    options.out.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")


main()
