"""Damaged GGUF files: keys, tensor tables, counts, lengths, truncation, bits."""
import struct

import base
import gguf_file as g
from case import ANYTHING, REFUSED, UNCHANGED, UNCHANGED_OR_REFUSED, Case, Family, inspect

IDS = "1,104,105,260,270,280"
RUN = ["run", "--prompt-ids", IDS, "-n", "12", "--temperature", "0", "--precision", "exact", "--ignore-eos", "--json"]
ASK = ["run", "--prompt", "the cat was", "--raw", "-n", "8", "--temperature", "0", "--precision", "exact", "--json"]
HUGE = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**48, 2**63 - 1, 2**63, 2**64 - 1]
# Keys that change nothing that is computed.
IDLE = ["general.name", "llama.vocab_size"]
# Keys without which nothing can be computed.
NEEDED = ["general.architecture", "llama.block_count", "llama.embedding_length", "llama.attention.head_count"]
SIZES = ["llama.block_count", "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
         "llama.attention.head_count_kv", "llama.rope.dimension_count", "llama.context_length", "llama.vocab_size"]
VOCABULARY = ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"]
STRINGS = [b"", b"\xff\xfe", b"\x1b[31mred\x1b[0m", "\u202e\u0085".encode(), b"a\0b", b"x" * 70_000,
           b"../../etc/passwd"]


def lower_layers(rng, f):
    f.set("llama.block_count", g.U32, rng.randrange(0, base.LAYERS))
    return REFUSED


def raise_layers(rng, f):
    f.set("llama.block_count", g.U32, rng.choice([base.LAYERS + 1, 100, 10**6, 2**31, 2**32 - 1]))
    return REFUSED


def size(rng, f):
    name = rng.choice(SIZES)
    f.set(name, g.U32, rng.choice([0, 1, 3, 7, 16, 33, 100, 4096, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1]))
    return UNCHANGED_OR_REFUSED if name == "llama.vocab_size" else ANYTHING


def drop_key(rng, f):
    name = rng.choice(f.keys)[0]
    del f.keys[f.place(name)]
    if name in IDLE:
        return UNCHANGED
    return REFUSED if name in NEEDED else UNCHANGED_OR_REFUSED if name.startswith("llama.") else ANYTHING


def same_value_other_type(rng, f):
    name, kind, value = rng.choice([key for key in f.keys if key[1] == g.U32])
    f.set(name, rng.choice([g.U64, g.I32, g.I64, g.U16, g.F32, g.F64]), value)
    return UNCHANGED_OR_REFUSED


def wrong_type(rng, f):
    name = rng.choice(f.keys)[0]
    kind, value = rng.choice([(g.STRING, "12"), (g.BOOL, 1), (g.BOOL, 7), (g.F32, float("nan")), (g.F64, float("inf")),
                              (g.I32, -1), (g.I64, -2**63), (g.ARRAY, (g.U32, [])), (g.ARRAY, (g.U32, [2] * 3)),
                              (g.ARRAY, (g.STRING, [b"", b"\xff"])), (g.ARRAY, (g.ARRAY, [(g.U8, [1])]))])
    f.set(name, kind, value)
    return ANYTHING


def unknown_type(rng, f):
    place = rng.randrange(len(f.keys))
    f.keys[place] = (f.keys[place][0], rng.choice([13, 14, 99, 2**31, 2**32 - 1]), g.Raw(b"\0" * 8))
    return REFUSED


def strange_string(rng, f):
    name = rng.choice([key[0] for key in f.keys if key[1] == g.STRING])
    f.set(name, g.STRING, rng.choice(STRINGS))
    return ANYTHING if name != "general.name" else UNCHANGED_OR_REFUSED


def lying_length(rng, f):
    name, kind, _ = f.keys[rng.randrange(len(f.keys))]
    many = rng.choice(HUGE + [10**9, 10**12, 2**61 + 1])
    lies = {g.STRING: struct.pack("<Q", many) + b"abc", g.ARRAY: struct.pack("<IQ", rng.randrange(13), many) + b"abc"}
    f.set(name, *rng.choice([(kind, g.Raw(lies[kind]))] if kind in lies else [(k, g.Raw(v)) for k, v in lies.items()]))
    return REFUSED


def nested_arrays(rng, f):
    depth = rng.choice([2, 8, 100, 10_000, 100_000])
    nested = struct.pack("<IQ", g.ARRAY, 1) * depth + struct.pack("<IQ", g.U8, 0)
    f.keys.append(("extra.nested", g.ARRAY, g.Raw(nested)))
    return UNCHANGED_OR_REFUSED


def many_arrays(rng, f):
    count = rng.choice([100, 10_000, 200_000])
    f.keys.append(("extra.many", g.ARRAY, g.Raw(struct.pack("<IQ", g.ARRAY, count)
                                                + struct.pack("<IQ", g.U8, 0) * count)))
    return UNCHANGED_OR_REFUSED


def twice(rng, f):
    name, kind, value = rng.choice(f.keys)
    if kind == g.U32 and rng.random() < 0.7:
        value = value + 1
    f.keys.insert(rng.randrange(len(f.keys) + 1), (name, kind, value))
    return UNCHANGED_OR_REFUSED


def strange_key_name(rng, f):
    f.keys.append((rng.choice(["", "\x1b]0;title\x07", "k" * 70_000, "\udcff\udcfe", "llama.", "general..x"]), g.U32,
                   1))
    return UNCHANGED_OR_REFUSED


def more_keys(rng, f):
    f.keys += [(f"extra.{i}", g.U8, 1) for i in range(rng.choice([10, 1000, 70_000]))]
    return UNCHANGED_OR_REFUSED


def counts(rng, f):
    tensors, keys = len(f.tensors), len(f.keys)
    f.counts = rng.choice([(tensors - 1, keys), (tensors + 1, keys), (0, keys), (tensors, keys - 1),
                           (tensors, keys + 1),
                           (tensors, 0), (0, 0), *[(n, keys) for n in HUGE], *[(tensors, n) for n in HUGE]])
    return REFUSED


def start(rng, f):
    f.magic, f.version = rng.choice([(b"GGUF", 0), (b"GGUF", 1), (b"GGUF", 4), (b"GGUF", 3 << 24), (b"GGUF", 2**32 - 1),
                                     (b"FUGG", 3), (b"GGML", 3), (b"\0\0\0\0", 3), (b"PK\3\4", 3)])
    return REFUSED


def alignment(rng, f):
    value = rng.choice([0, 1, 2, 3, 8, 16, 24, 64, 4096, 2**20, 2**31, 2**32 - 1])
    f.set("general.alignment", g.U32, value)
    if rng.random() < 0.5 and 0 < value <= 2**20:
        f.alignment = value
    return UNCHANGED_OR_REFUSED


def vocabulary(rng, f):
    name = rng.choice(VOCABULARY)
    inner, items = f.get(name)
    strange = STRINGS + ["the", "</s>", " ", "a b c", "\u0120" * 300] if inner == g.STRING else [-1, 0, 6, 99,
                                                                                                 2**31 - 1]
    change = rng.randrange(5)
    items = list(items)
    if change == 0:
        items = items[:rng.choice([0, 1, 3, len(items) - 1, len(items) // 2])]
    elif change == 1:
        items += [rng.choice(strange)] * rng.choice([1, 100, 100_000])
    elif change == 2:
        items[rng.randrange(len(items))] = rng.choice(strange)
    elif change == 3:
        items = [rng.choice(items) for _ in items]
    else:
        rng.shuffle(items)
    f.set(name, g.ARRAY, (inner, items))
    return ANYTHING


def special_id(rng, f):
    name = rng.choice(["bos_token_id", "eos_token_id", "unknown_token_id"])
    f.set(f"tokenizer.ggml.{name}", g.U32, rng.choice([base.VOCAB - 1, base.VOCAB, 10**6, 2**32 - 1]))
    return ANYTHING


def rename_tensor(rng, f):
    t = rng.choice(f.tensors)
    t.name = rng.choice([t.name + "x", t.name[:-1], t.name.upper(), "", "x" * 70, "\x1b[2J", "\udcff",
                         "blk.99." + t.name])
    # Without a matrix of its own for the output, the embedding's is taken, as everywhere; but this one is not read.
    return REFUSED


def drop_tensor(rng, f):
    name = rng.choice(f.tensors).name
    f.tensors.remove(f.tensor(name))
    return ANYTHING if name == "output.weight" else REFUSED


def extra_tensor(rng, f):
    name = rng.choice([f"blk.{base.LAYERS}.attn_q.weight", "blk.0.ffn_gate_exps.weight",
                       "blk.0.attn_q_norm.weight", "surprise.weight", "blk.999999999999.ffn_up.weight"])
    f.tensors.append(g.Tensor(name, [base.HIDDEN], g.TENSOR_F32, b"\0" * 4 * base.HIDDEN))
    return REFUSED


def zero_bias(rng, f):
    """A bias is added where a file has one, as llama.cpp does; this one changes nothing."""
    name = f"blk.{rng.randrange(base.LAYERS)}.attn_output.bias"
    f.tensors.append(g.Tensor(name, [base.HIDDEN], g.TENSOR_F32, b"\0" * 4 * base.HIDDEN))
    return UNCHANGED


def tensor_twice(rng, f):
    t = rng.choice(f.tensors)
    f.tensors.append(g.Tensor(t.name, t.dims, t.kind, t.data))
    return REFUSED


def dims(rng, f):
    t = rng.choice(f.tensors)
    before, place = list(t.dims), rng.randrange(len(t.dims))
    t.dims = list(t.dims)
    match rng.randrange(5):
        case 0:
            t.dims[place] = rng.choice([0, 1, t.dims[place] - 1, t.dims[place] + 1, t.dims[place] * 2, *HUGE])
        case 1:
            t.dims.reverse()
        case 2:
            t.dims.append(rng.choice([1, 2, 2**32]))
        case 3:
            t.rank = rng.choice([0, 1, 5, 8, 100, 2**31, 2**32 - 1])
        case _:
            t.dims = [2**32, 2**32] if rng.random() < 0.5 else [2**21, 2**21, 2**21, 2]
    strip = [d for d in t.dims if d != 1]
    same = strip == before and t.rank is None or t.rank == len(t.dims)
    return UNCHANGED_OR_REFUSED if same else REFUSED


def offset(rng, f):
    t = rng.choice([t for t in f.tensors if t.name != "token_embd.weight"])
    t.offset = rng.choice([1, 4, 31, 33, 2**20 + 32, 2**40, 2**63, 2**64 - 32, 2**64 - 1])
    return REFUSED


def overlap(rng, f):
    first, second = rng.sample([t for t in f.tensors if len(t.dims) == 2 and t.name != "token_embd.weight"], 2)
    second.offset = rng.choice([0, 32])
    return REFUSED


def tensor_type(rng, f):
    t = rng.choice(f.tensors)
    t.kind = rng.choice([k for k in [*range(42), 99, 2**31, 2**32 - 1] if k != t.kind])
    return ANYTHING


def not_a_number(rng, f):
    t = rng.choice([t for t in f.tensors if t.kind == g.TENSOR_F32])
    data, count = bytearray(t.data), len(t.data) // 4
    whole = rng.random() < 0.5
    for place in range(count) if whole else [rng.randrange(count)]:
        struct.pack_into("<I", data, 4 * place, rng.choice([0x7FC00000, 0xFFC00000, 0x7F800001]))
    t.data = bytes(data)
    return UNCHANGED_OR_REFUSED


def infinite(rng, f):
    t = rng.choice([t for t in f.tensors if t.kind == g.TENSOR_F32])
    data = bytearray(t.data)
    for _ in range(rng.choice([1, 10])):
        struct.pack_into("<f", data, 4 * rng.randrange(len(data) // 4), rng.choice([float("inf"), -float("inf"), 3e38]))
    t.data = bytes(data)
    return ANYTHING


def rotation(rng, f):
    f.set("llama.rope.freq_base", g.F32, rng.choice([0.0, -1.0, 1e-38, 1e38, float("nan"), float("inf"), 1.0]))
    return ANYTHING


def scaling(rng, f):
    kind = rng.choice(["linear", "yarn", "none", "longrope", "nonsense", ""])
    f.keys.append(("llama.rope.scaling.type", g.STRING, kind))
    f.keys.append(("llama.rope.scaling.factor", g.F32, rng.choice([0.0, -2.0, 1.0, 4.0, 1e38, float("nan")])))
    f.keys.append(("llama.rope.scaling.original_context_length", g.U32, rng.choice([0, 1, 64, 2**32 - 1])))
    return ANYTHING


def epsilon(rng, f):
    f.set("llama.attention.layer_norm_rms_epsilon", g.F32, rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e38]))
    return ANYTHING


def architecture(rng, f):
    f.set("general.architecture", g.STRING,
          rng.choice(["mamba", "llama4", "qwen2", "gemma3", "gpt2", "phi3", "clip", "LLAMA",
                                                        "", "llama\0", "\x1b[31mllama"]))
    return ANYTHING


def chat_template(rng, f):
    f.set("tokenizer.chat_template", g.STRING, rng.choice(["{{", "{% for %}", "\x1b[31m", b"\xff\xfe", "{{ x.y.z }}",
                                                           "{{ raise_exception('no\x1b[2J') }}"]))
    return ANYTHING


TREE = [lower_layers, raise_layers, size, size, drop_key, same_value_other_type, wrong_type, wrong_type, unknown_type,
        strange_string, lying_length, lying_length, nested_arrays, many_arrays, twice, strange_key_name, more_keys,
        counts,
        counts, start, alignment, vocabulary, vocabulary, special_id, rename_tensor, drop_tensor, extra_tensor,
        zero_bias, tensor_twice, dims, dims, offset, overlap, tensor_type, not_a_number, infinite, rotation, scaling, epsilon,
        architecture, chat_template]


def truncated(rng, f):
    data, header = f.encode(), len(f.header())
    at = rng.randrange(header) if rng.random() < 0.6 else rng.randrange(header, len(data) - 31)
    return data[:at], REFUSED


def longer(rng, f):
    return f.encode() + bytes(rng.choice([1, 31, 32, 4096])), UNCHANGED_OR_REFUSED


def flipped(rng, f):
    data, header = bytearray(f.encode()), len(f.header())
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(header)] ^= 1 << rng.randrange(8)
    return bytes(data), ANYTHING


def overwritten(rng, f):
    data, header = bytearray(f.encode()), len(f.header())
    at = rng.randrange(header - 16)
    run = rng.choice([bytes(8), b"\xff" * 8, rng.randbytes(8), struct.pack("<Q", rng.choice(HUGE)),
                      data[at + 8:at + 16]])
    data[at:at + 8] = run
    return bytes(data), ANYTHING


def shifted(rng, f):
    data, header = f.encode(), len(f.header())
    at = rng.randrange(24, header)
    length = rng.choice([1, 4, 8, 32])
    return (data[:at] + data[at + length:] if rng.random() < 0.5 else data[:at] + bytes(length) + data[at:]), ANYTHING


BYTES = [truncated, truncated, longer, flipped, flipped, flipped, flipped, overwritten, overwritten, shifted]


def make(rng, folder, _work):
    kind = rng.choice(["f32.gguf", "q8.gguf"])
    tree = base.gguf(quantised=kind == "q8.gguf")
    mutate = rng.choice(TREE + BYTES)
    if mutate in BYTES:
        data, allow = mutate(rng, tree)
    else:
        allow = mutate(rng, tree)
        data = tree.encode()
    what = f"{mutate.__name__} ({kind})"
    view = rng.random()
    if view < 0.12:
        return inspect(what, "m.gguf", {"m.gguf": data}, allow)
    words, keys = (ASK, ("tokens", "text")) if view < 0.4 else (RUN, ("tokens",))
    return Case(what, [*words, "--model", "m.gguf"], {"m.gguf": data}, allow,
                [*words, "--model", str(folder / kind)], keys)


FAMILY = Family("gguf", 3000, make)
