"""Damaged safetensors: headers, offsets, types, shapes, and indices of several files."""
import json
import struct

import architectures
import base
from case import ANYTHING, REFUSED, UNCHANGED_OR_REFUSED, Case, Family, Link, inspect

RUN = ["run", "--prompt-ids", "1,104,105,260,270,280", "-n", "8", "--temperature", "0", "--precision", "exact",
       "--ignore-eos", "--json"]
ARCHITECTURES = ["llama", "qwen2", "gemma3", "gpt2", "gptoss", "deepseek"]
DTYPES = ["F64", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F4", "f32", "", "\x1b[31m", 7, None]
HUGE = [2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30]


def parts(tensors):
    """(header, data) of an unharmed file."""
    whole = base.safetensors(tensors, {"format": "pt"})
    length, = struct.unpack_from("<Q", whole)
    return json.loads(whole[8:8 + length]), whole[8 + length:]


def pick(rng, header):
    return rng.choice([name for name in header if name != "__metadata__"])


def dtype(rng, header, data):
    name = pick(rng, header)
    header[name]["dtype"] = rng.choice(DTYPES)
    return data, REFUSED


def shape(rng, header, data):
    entry = header[pick(rng, header)]
    before = list(entry["shape"])
    place = rng.randrange(len(before))
    match rng.randrange(4):
        case 0:
            entry["shape"][place] = rng.choice([0, -1, 1, before[place] + 1, before[place] - 1, 1.5, "8", None, *HUGE])
        case 1:
            entry["shape"].reverse()
        case 2:
            entry["shape"] = rng.choice([[], None, "x", {}, before * 2, [1] * 100, [2**32, 2**32]])
        case _:
            count = 1
            for dim in before:
                count *= dim
            entry["shape"] = [count]
    return data, UNCHANGED_OR_REFUSED if entry["shape"] == before else REFUSED


def offsets(rng, header, data):
    entry = header[pick(rng, header)]
    first, last = entry["data_offsets"]
    wrong = [[last, first], [first, last + 4], [first + 4, last], [first, len(data) + 4], [first + 1, last + 1],
             [-4, last],
             [first, first], [], [first], [first, last, last], None, ["0", "4"], [first + .5, last],
             *[[n, n + last - first]
                                                                                                for n in HUGE]]
    entry["data_offsets"] = rng.choice(wrong)
    return data, REFUSED


def overlap(rng, header, data):
    names = [n for n in header if n != "__metadata__" and len(header[n]["shape"]) == 2]
    alike = [(a, b) for a in names for b in names if a != b and header[a]["shape"] == header[b]["shape"]]
    first, second = rng.choice(alike)
    header[first]["data_offsets"] = list(header[second]["data_offsets"])
    return data, REFUSED


def renamed(rng, header, data):
    name = pick(rng, header)
    header[rng.choice([name + "x", "\x1b[2J", "", name.upper(),
                       "model.layers.99.mlp.up_proj.weight"])] = header.pop(name)
    return data, REFUSED


def removed(rng, header, data):
    name = pick(rng, header)
    del header[name]
    return data, REFUSED


def extra(rng, header, data):
    name = rng.choice(["surprise.weight", f"model.layers.{architectures.LAYERS}.mlp.up_proj.weight", "\x1b[2Jx"])
    header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [len(data), len(data) + 8]}
    return data + bytes(8), REFUSED


def metadata(rng, header, data):
    header["__metadata__"] = rng.choice([None, [], 7, {"format": 7}, {"x": "\x1b[31m"}, {"y": "z" * 10**6}, {},
                                         {str(i): "" for i in range(50_000)}])
    return data, UNCHANGED_OR_REFUSED


def entry(rng, header, data):
    header[pick(rng, header)] = rng.choice([None, [], 7, "x", {}, {"dtype": "F32"}])
    return data, REFUSED


def many(rng, header, data):
    header |= {f"empty.{i}": {"dtype": "F32", "shape": [0], "data_offsets": [len(data)] * 2} for i in range(100_000)}
    return data, UNCHANGED_OR_REFUSED


def not_a_number(rng, header, data):
    first, last = header[pick(rng, header)]["data_offsets"]
    data = bytearray(data)
    places = range(first, last, 4) if rng.random() < 0.5 else [first + 4 * rng.randrange((last - first) // 4)]
    for at in places:
        struct.pack_into("<I", data, at, 0x7FC00000)
    return bytes(data), UNCHANGED_OR_REFUSED


TREE = [dtype, shape, shape, offsets, offsets, overlap, renamed, removed, extra, metadata, entry, many, not_a_number]


def whole(header, data):
    return base.safetensors_raw(json.dumps(header).encode(), data)


def length(rng, header, data):
    text = json.dumps(header).encode()
    wrong = rng.choice([0, 1, 7, len(text) - 1, len(text) + 100, 10**8, 10**8 + 1, len(text) + len(data), *HUGE[:6]])
    return struct.pack("<Q", wrong) + text + data, REFUSED


def truncated(rng, header, data):
    file = whole(header, data)
    return file[:rng.randrange(len(file))], REFUSED


def longer(rng, header, data):
    return whole(header, data) + bytes(rng.choice([1, 8, 4096])), UNCHANGED_OR_REFUSED


def flipped(rng, header, data):
    file = bytearray(whole(header, data))
    for _ in range(rng.choice([1, 2, 6])):
        file[rng.randrange(len(file) - len(data))] ^= 1 << rng.randrange(8)
    return bytes(file), ANYTHING


def deep(rng, header, data):
    depth = rng.choice([200, 100_000])
    text = json.dumps(header)[:-1] + ', "__metadata__x": ' + "[" * depth + "]" * depth + "}"
    return base.safetensors_raw(text.encode(), data), REFUSED


def twice(rng, header, data):
    name = pick(rng, header)
    text = json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}"
    return base.safetensors_raw(text.encode(), data), UNCHANGED_OR_REFUSED


BYTES = [length, length, truncated, longer, flipped, flipped, deep, twice]


def single(rng, name):
    """A damaged file."""
    header, data = parts(base.tensors_of(name))
    mutate = rng.choice(TREE + BYTES)
    if mutate in BYTES:
        file, allow = mutate(rng, header, data)
    else:
        data, allow = mutate(rng, header, data)
        file = whole(header, data)
    return mutate.__name__, {"model.safetensors": file}, allow


def sharded(rng, name):
    """Two files and a damaged index."""
    tensors = base.tensors_of(name)
    names = list(tensors)
    files = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    halves = [names[:len(names) // 2], names[len(names) // 2:]]
    place = {tensor: file for file, half in zip(files, halves) for tensor in half}
    index = {"metadata": {"total_size": 1}, "weight_map": place}
    data = {file: base.safetensors({n: tensors[n] for n in half}) for file, half in zip(files, halves)}
    some, allow, text = rng.choice(names), REFUSED, None
    change = rng.choice(["swap", "missing file", "outside", "absolute", "lost", "phantom", "type", "cut", "nothing",
                         "deep",
                         "control"])
    match change:
        case "swap":
            place[some] = files[place[some] == files[0]]
        case "missing file":
            del data[rng.choice(files)]
        case "outside":
            place[some] = rng.choice(["../model.safetensors", "a/../../x", ".", "..", ""])
        case "absolute":
            place[some] = rng.choice(["/etc/passwd", "/dev/zero", "/dev/stdin"])
        case "lost":
            del place[some]
        case "phantom":
            place["phantom.weight"] = files[0]
        case "type":
            index["weight_map"] = rng.choice([[], None, 7, {some: 7}, {some: None}])
        case "cut":
            text = json.dumps(index)[:rng.randrange(2, 200)]
        case "nothing":
            allow = frozenset(["same"])
        case "deep":
            index["metadata"], allow = "DEEP", UNCHANGED_OR_REFUSED
            text = json.dumps(index).replace('"DEEP"', "[" * 10**5 + "]" * 10**5)
        case "control":
            place[some] = "\x1b[2J\x07.safetensors"
    # Which file a tensor is in need not come from the index.
    allow = UNCHANGED_OR_REFUSED if change in ("swap", "lost", "phantom") else allow
    data["model.safetensors.index.json"] = (text or json.dumps(index)).encode()
    return f"index: {change}", data, allow


def make(rng, folder, _work):
    name = rng.choice(ARCHITECTURES)
    what, files, allow = single(rng, name) if rng.random() < 0.8 else sharded(rng, name)
    files |= {part: Link(str(folder / name / part))
              for part in ("config.json", "tokenizer.json", "tokenizer_config.json")}
    if rng.random() < 0.1:
        return inspect(f"{what} ({name})", ".", files, allow)
    return Case(f"{what} ({name})", [*RUN, "--model", "."], files, allow, [*RUN, "--model", str(folder / name)],
                ("tokens",))


FAMILY = Family("safetensors", 500, make)
