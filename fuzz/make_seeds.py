"""Writes the hand-made seeds of the container targets, by writers that are not ours.

    python3 -m pip install gguf numpy safetensors
    python3 fuzz/make_seeds.py

The reader tests check the values that are written here, so the writers are their oracle.
"""

import hashlib
import json
import pathlib
import random

import gguf
import numpy as np
from safetensors.numpy import save_file

CORPUS = pathlib.Path(__file__).parent / "corpus"
T = gguf.GGUFValueType


def writer(name, arch="llama", **kw):
    return gguf.GGUFWriter(CORPUS / "gguf" / name, arch, **kw)


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def all_types():
    w = writer("all_types.gguf")
    for key, value, ty in [
        ("t.u8", 200, T.UINT8), ("t.i8", -100, T.INT8), ("t.u16", 60000, T.UINT16), ("t.i16", -30000, T.INT16),
        ("t.u32", 4000000000, T.UINT32), ("t.i32", -2000000000, T.INT32), ("t.f32", 1e-6, T.FLOAT32),
        ("t.bool", True, T.BOOL), ("t.string", "grüße 🦙", T.STRING), ("t.u64", 2**63, T.UINT64),
        ("t.i64", -(2**62), T.INT64), ("t.f64", 0.1, T.FLOAT64),
    ]:
        w.add_key_value(key, value, ty)
    w.add_array("t.strings", ["", "a", "ß", "🦙 llama"])
    w.add_array("t.ints", [1, -2, 3])
    w.add_array("t.floats", [0.5, -1.5])
    w.add_array("t.bools", [True, False, True])
    w.add_array("t.nested", [[1, 2], [3]])
    w.add_tensor("a.weight", np.arange(12, dtype=np.float32).reshape(3, 4))
    w.add_tensor("b.weight", np.arange(5, dtype=np.float16))
    w.add_tensor("c.weight", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    finish(w)


def quantised():
    w = writer("quantised.gguf")
    w.add_custom_alignment(64)
    q8 = np.zeros((2, 34), dtype=np.uint8)
    q8[:, 2:] = np.arange(32, dtype=np.uint8)
    w.add_tensor("q8.weight", q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("iq1.weight", np.zeros((1, 50), dtype=np.uint8), raw_dtype=gguf.GGMLQuantizationType.IQ1_S)
    w.add_tensor("i32.weight", np.arange(3, dtype=np.int32))
    finish(w)


def model(name, arch, extra):
    """A header with all the keys that the translation reads, and a vocabulary."""
    w = writer(name, arch)
    w.add_context_length(64)
    w.add_embedding_length(8)
    w.add_block_count(2)
    w.add_feed_forward_length(16)
    w.add_head_count(2)
    w.add_head_count_kv(1)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(10000.0)
    w.add_tokenizer_model("gpt2")
    w.add_token_list(["a", "b", "<|im_end|>", "<|endoftext|>"])
    w.add_token_types([1, 1, 3, 3])
    w.add_eos_token_id(2)
    w.add_bos_token_id(3)
    extra(w)
    w.add_tensor("token_embd.weight", np.zeros((4, 8), dtype=np.float32))
    finish(w)


def gemma3(w):
    w.add_key_length(4)
    w.add_sliding_window(16)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(8.0)


def gpt_oss(w):
    w.add_sliding_window(8)
    w.add_expert_count(4)
    w.add_expert_used_count(2)
    w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    w.add_rope_scaling_factor(32.0)
    w.add_rope_scaling_orig_ctx_len(4096)


def tensors():
    folder = CORPUS / "safetensors"
    save_file(
        {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4, dtype=np.float16),
         "blocks": np.arange(8, dtype=np.uint8).reshape(2, 2, 2), "ids": np.arange(2, dtype=np.int64),
         "empty": np.zeros((0, 4), dtype=np.float32), "scalar": np.array(7.0, dtype=np.float32)},
        folder / "mixed.safetensors", metadata={"format": "pt"})
    save_file({}, folder / "nothing.safetensors")
    header = {"q": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]},
              "w": {"dtype": "BF16", "shape": [2], "data_offsets": [4, 8]}}
    raw = json.dumps(header).encode()
    (folder / "fp8_bf16.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(8))


def kept_head(description, file_bytes):
    """The head of kept weights, by the description in crates/yirage-packed/src/header.rs."""
    raw = json.dumps(description, ensure_ascii=False, indent=1).encode()
    prefix = b"YIRPACK\0" + b"".join(n.to_bytes(w, "little") for n, w in
                                     [(2, 4), (0, 4), (len(raw), 8), (file_bytes, 8)])
    return prefix + hashlib.sha256(prefix + raw).digest() + raw, raw


def kept_heads():
    folder = CORPUS / "packed_header"
    data = bytes(i * 7 % 256 for i in range(12345))
    images = [("layers.0.weight", 4096, 70000 % 4096), ("norm", 8192, 12345 - 8192)]
    description = {
        "key": "0123456789abcdef" * 2, "device": "cpu “tiles”",
        "source": [{"path": "/models/ä.gguf", "bytes": 7, "modified": -5, "changed": 1}], "range_bytes": 65536,
        "images": [{"name": n, "offset": o, "bytes": b, "sums": [hashlib.sha256(data[o:o + b]).hexdigest()[:32]]}
                   for n, o, b in images]}
    head, raw = kept_head(description, len(data))
    (folder / "two_images.bin").write_bytes(head)
    (folder / "two_images.json").write_bytes(len(data).to_bytes(4, "little") + raw)
    head, raw = kept_head({**description, "images": [], "source": []}, 400)
    (folder / "no_images.bin").write_bytes(head)
    for name, change in [("overlap", {"offset": 4096}), ("outside", {"bytes": 2**64 - 1}), ("odd", {"offset": 8193}),
                         ("name_twice", {"name": "layers.0.weight"}), ("sums", {"sums": ["x"]})]:
        changed = {**description, "images": [description["images"][0], {**description["images"][1], **change}]}
        (folder / f"{name}.json").write_bytes(len(data).to_bytes(4, "little") + kept_head(changed, 0)[1])


def graphs():
    """Choices of graphs: none, and any."""
    folder = CORPUS / "random_graph"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "none.bin").write_bytes(b"")
    choose = random.Random(16)
    for length in [8, 24, 64, 128, 256, 256, 512, 512]:
        number = len(list(folder.iterdir()))
        (folder / f"any{number}.bin").write_bytes(bytes(choose.randrange(256) for _ in range(length)))


def npy():
    """Arrays of every type and order that is read, and some that are refused."""
    folder = CORPUS / "npy"
    folder.mkdir(exist_ok=True)
    x = np.arange(6).reshape(2, 3)
    for name in ["float32", "float16", "int32", "uint32", "bool", "float64", ">f4", "V2"]:
        array = x.astype(np.uint16).view("V2") if name == "V2" else x.astype(name)
        np.save(folder / (name.strip(">") + ".npy"), array)
    np.save(folder / "fortran.npy", np.asfortranarray(x.astype(np.float32)))
    np.save(folder / "scalar.npy", np.float32(1.5))
    np.save(folder / "empty.npy", np.zeros((0, 4), np.float32))
    np.save(folder / "fields.npy", np.zeros(2, [("a", "<f4")]))
    for version in [(2, 0), (3, 0)]:
        with open(folder / f"version{version[0]}.npy", "wb") as f:
            np.lib.format.write_array(f, x.astype(np.float32), version)


def graph_json():
    """Graphs by hand: every kind of input, a region, symbols, strides."""
    folder = CORPUS / "graph_json"
    folder.mkdir(exist_ok=True)

    def document(inputs, nodes, outputs):
        return {"yirage-graph": 2, "graph": {"name": "g", "inputs": inputs, "nodes": nodes, "outputs": outputs}}

    def value(name, kind, shape, **more):
        return {"name": name, "kind": kind, "dtype": "f32", "shape": shape, **more}

    def op(name, attrs, inputs, output):
        return {"op": name, "attrs": attrs, "inputs": inputs, "outputs": [{"name": output}]}

    x, rows = value("x", "input", [2, 3]), value("x", "input", ["Tokens", 8])
    norm = op("rms_norm", {"eps": "1e-5", "width": 8, "unit_offset": False}, ["x"], "y")
    inner = document([rows], [norm], ["y"])["graph"]
    documents = {
        "map": document([x], [op("map", {"expr": "exp(x0)"}, ["x"], "y")], ["y"]),
        "reduce": document([x], [op("reduce", {"kind": "sum", "axes": [1], "keep": True}, ["x"], "y")], ["y", "x"]),
        "view": document([x], [op("view", {"form": "slice(0:1:2, 2:-1:3)"}, ["x"], "y")], ["y"]),
        "contract": document(
            [x, value("w", "weight", [3, 4], strides=[1, 3], after=1)],
            [op("map", {"expr": "silu(x0)"}, ["x"], "s"), op("contract", {}, ["s", "w"], "y")],
            ["y"],
        ),
        "region": document(
            [rows], [{"region": "rows", "graph": inner, "inputs": ["x"], "outputs": [{"name": "r"}]}], ["r"]
        ),
        "state": document([value("s", "kv_cache", [32, 1, 8])], [], ["s"]),
        "fill": document([], [op("fill", {"value": "nan", "shape": [2]}, [], "y")], ["y"]),
    }
    for name, content in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def fnv128(text):
    """FNV-1a of 128 bits, as its authors describe it."""
    value = 0x6C62272E07BB014262B821756295C58D
    for byte in text.encode():
        value = (value ^ byte) * 0x0000000001000000000000000000013B % (1 << 128)
    return f"{value:032x}"


def plan_files():
    """A plan of the reference device under its seal."""
    folder = CORPUS / "plan_file"
    folder.mkdir(exist_ok=True)
    inputs = "input %a: f32[Tokens, 16]\nweight %w: f32[16]\n"
    interface = f"graph small\n{inputs}output %y: f32[Tokens, 16]\n"
    indented = "".join(f"  {line}\n" for line in inputs.splitlines())
    plan = (
        "plan reference scalar workers=1\nprecision exact\nbucket tokens=8 seqs=1 blocks=1 rows=1\narena 1024\n"
        "weight %w: f32[16] layout=rows groups=1 shard=-\nkernel reference/eval@1 scalar\n"
        "placement 2 offset=0 bytes=512\nplacement 3 offset=512 bytes=512\n"
        "step node=0 kernel=0 phase=0\nstep node=1 kernel=0 phase=1\nprogram steps counters=0\nqueue\n"
        f"graph small {{\n{indented}"
        '  %s = map{expr="add(x0, x1)"}(%a, %w): f32[Tokens, 16]\n'
        '  %y = map{expr="silu(x0)"}(%s): f32[Tokens, 16]\n  output %y\n}\n'
    )
    key = (
        f"graph {0:032x}\ninterface {fnv128(interface)}\ncompiler 0.1.0 1\ntarget reference scalar workers=1\n"
        f"facts {0:032x}\nprecision exact\nfuse false\nbucket 8 1 1 1\n"
    )
    sections = [("key", key), ("interface", interface), ("plan", plan)]
    rest = "".join(f"{name} {len(body.encode())}\n{body}\n" for name, body in sections)
    digest = hashlib.sha256(rest.encode()).hexdigest()
    (folder / "small.txt").write_text(f"yirage-plan 2\nsum {digest}\n{rest}")


def mutants(name):
    """Seeds with a few bytes changed, in the place of a campaign's findings."""
    rng = random.Random(name)
    folder = CORPUS.parent / "found" / name
    folder.mkdir(parents=True, exist_ok=True)
    seeds = sorted((CORPUS / name).iterdir())
    for n in range(40):
        data = bytearray(seeds[n % len(seeds)].read_bytes())
        for _ in range(1 + n % 4):
            at = rng.randrange(len(data))
            if rng.random() < 0.7:
                data[at] = rng.choice(b"0123456789'\"{}[](),:TFxyL<>f\xff\x00")
            else:
                del data[at : at + rng.randrange(1, 8)]
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def main():
    for folder in ["gguf", "packed_header", "safetensors"]:
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    all_types()
    quantised()
    model("llama.gguf", "llama", lambda w: None)
    model("gemma3.gguf", "gemma3", gemma3)
    model("gpt-oss.gguf", "gpt-oss", gpt_oss)
    old = bytearray((CORPUS / "gguf" / "all_types.gguf").read_bytes())
    old[4] = 2
    (CORPUS / "gguf" / "version2.gguf").write_bytes(old)
    tensors()
    kept_heads()
    graphs()
    npy()
    graph_json()
    mutants("npy")
    mutants("graph_json")
    plan_files()
    mutants("plan_file")


main()
