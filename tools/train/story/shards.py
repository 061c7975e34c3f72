"""Weights as safetensors files of bounded size, written and read with numpy alone.

The format: eight bytes of header length, a JSON header with type, shape and place of each tensor, then the bytes. A
shard holds whole tensors; the index names each tensor's shard, as Hugging Face checkpoints do.
"""
import json

import numpy as np

SHARD_BYTES = 15_000_000
INDEX = "model.safetensors.index.json"


def write_file(path, tensors, metadata=None):
    """One safetensors file of float32 tensors."""
    header, at = {"__metadata__": {"format": "pt", **(metadata or {})}}, 0
    for name, value in tensors.items():
        header[name] = dict(dtype="F32", shape=list(value.shape), data_offsets=[at, at + value.nbytes])
        at += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for value in tensors.values():
            out.write(np.ascontiguousarray(value, dtype="<f4").tobytes())


def write(folder, tensors):
    """Shards of at most SHARD_BYTES (a larger tensor has one of its own) and their index."""
    shards, room = [], 0
    for name, value in tensors.items():
        if value.nbytes > room or not shards:
            shards.append({})
            room = SHARD_BYTES
        shards[-1][name] = value
        room -= value.nbytes
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    for name, shard in zip(names, shards):
        write_file(folder / name, shard)
    weight_map = {tensor: name for name, shard in zip(names, shards) for tensor in shard}
    total = sum(value.nbytes for value in tensors.values())
    (folder / INDEX).write_text(json.dumps(dict(metadata=dict(total_size=total), weight_map=weight_map), indent=1) + "\n")


def read(folder):
    """All tensors of what `write` wrote, in its order."""
    tensors = {}
    weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
    for name in dict.fromkeys(weight_map.values()):
        raw = (folder / name).read_bytes()
        begin = 8 + int.from_bytes(raw[:8], "little")
        for tensor, entry in json.loads(raw[8:begin]).items():
            if tensor != "__metadata__":
                first, last = (begin + offset for offset in entry["data_offsets"])
                tensors[tensor] = np.frombuffer(raw[first:last], dtype="<f4").reshape(entry["shape"])
    return tensors
