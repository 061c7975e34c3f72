"""The unharmed models that are damaged: random weights, byte-level tokenizer, made from a seed in a moment.

A GGUF file in 32-bit floats and one in 8-bit blocks, and folders of safetensors for every architecture.
"""
import copy
import functools
import json
import random
import struct

import architectures
import gguf_file as g

VOCAB = 320
HIDDEN, HEADS, KV_HEADS, WIDTH, INNER, LAYERS = 32, 4, 2, 8, 64, 3
WORDS = "the and day little was said she they cat dog with happy play once upon time there big tree friend ".split()
SPECIAL = ["<unk>", "<s>", "</s>"]
TEMPLATE = ("{% for message in messages %}{{ '<s>' + message['role'] + ': ' + message['content'] | trim + '</s>' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")


def byte_letters():
    """The letter that stands for each byte in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, free = {b: chr(b) for b in plain}, 256
    for b in range(256):
        if b not in letters:
            letters[b], free = chr(free), free + 1
    return letters


def vocabulary():
    """(tokens by id, merges): special tokens, the bytes, then what merging letters of words gives."""
    letters = byte_letters()
    tokens, merges = SPECIAL + [letters[b] for b in range(256)], []
    for word in WORDS:
        left = letters[32]
        for letter in word:
            if len(tokens) == VOCAB:
                return tokens, merges
            if left + letter not in tokens:
                merges.append((left, letter))
                tokens.append(left + letter)
            left += letter
    assert len(tokens) == VOCAB, "too few words for the vocabulary"
    return tokens, merges


def weights(rng, shape):
    """Normal numbers whose products keep their size; vectors are norms, around 1."""
    count = 1
    for dim in shape:
        count *= dim
    if len(shape) == 1:
        return [1.0 + rng.gauss(0, 0.1) for _ in range(count)]
    spread = 1.5 / shape[-1] ** 0.5
    return [rng.gauss(0, spread) for _ in range(count)]


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def gguf(quantised=False):
    """A model of the llama family as a GGUF tree, to be changed."""
    return copy.deepcopy(unharmed_gguf(quantised))


@functools.cache
def unharmed_gguf(quantised):
    tokens, merges = vocabulary()
    keys = [
        ("general.architecture", g.STRING, "llama"),
        ("general.name", g.STRING, "random"),
        ("general.alignment", g.U32, g.ALIGNMENT),
        ("llama.block_count", g.U32, LAYERS),
        ("llama.context_length", g.U32, 256),
        ("llama.embedding_length", g.U32, HIDDEN),
        ("llama.feed_forward_length", g.U32, INNER),
        ("llama.attention.head_count", g.U32, HEADS),
        ("llama.attention.head_count_kv", g.U32, KV_HEADS),
        ("llama.attention.layer_norm_rms_epsilon", g.F32, 1e-5),
        ("llama.rope.dimension_count", g.U32, WIDTH),
        ("llama.rope.freq_base", g.F32, 10000.0),
        ("llama.vocab_size", g.U32, VOCAB),
        ("tokenizer.ggml.model", g.STRING, "gpt2"),
        ("tokenizer.ggml.pre", g.STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", g.ARRAY, (g.STRING, tokens)),
        ("tokenizer.ggml.token_type", g.ARRAY, (g.I32, [3] * len(SPECIAL) + [1] * (VOCAB - len(SPECIAL)))),
        ("tokenizer.ggml.merges", g.ARRAY, (g.STRING, [" ".join(pair) for pair in merges])),
        ("tokenizer.ggml.bos_token_id", g.U32, 1),
        ("tokenizer.ggml.eos_token_id", g.U32, 2),
        ("tokenizer.ggml.unknown_token_id", g.U32, 0),
        ("tokenizer.ggml.add_bos_token", g.BOOL, 1),
        ("tokenizer.chat_template", g.STRING, TEMPLATE),
    ]
    shapes = [("token_embd.weight", [VOCAB, HIDDEN]), ("output.weight", [VOCAB, HIDDEN])]
    for layer in range(LAYERS):
        for part, shape in [("attn_norm", [HIDDEN]), ("attn_q", [HEADS * WIDTH, HIDDEN]),
                            ("attn_k", [KV_HEADS * WIDTH, HIDDEN]), ("attn_v", [KV_HEADS * WIDTH, HIDDEN]),
                            ("attn_output", [HIDDEN, HEADS * WIDTH]), ("ffn_norm", [HIDDEN]),
                            ("ffn_gate", [INNER, HIDDEN]), ("ffn_up", [INNER, HIDDEN]), ("ffn_down", [HIDDEN, INNER])]:
            shapes.append((f"blk.{layer}.{part}.weight", shape))
    shapes.append(("output_norm.weight", [HIDDEN]))
    rng, tensors = random.Random("gguf"), []
    for name, shape in shapes:
        values = weights(rng, shape)
        blocks = quantised and len(shape) == 2
        data = g.q8_0(values) if blocks else floats(values)
        tensors.append(g.Tensor(name, shape[::-1], g.TENSOR_Q8_0 if blocks else g.TENSOR_F32, data))
    return g.File(keys, tensors)


def safetensors(tensors, metadata=None):
    """`{name: (dtype, shape, bytes)}` as a file."""
    header, at = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    return safetensors_raw(json.dumps(header).encode(), b"".join(t[2] for t in tensors.values()))


def safetensors_raw(header, data):
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


@functools.cache
def tensors_of(name):
    """An architecture's tensors with random weights: `{name: (dtype, shape, bytes)}`. Not to be changed."""
    rng = random.Random(name)
    return {tensor: ("F32", shape, floats(weights(rng, shape))) for tensor, shape in architectures.shapes(name).items()}


def tokenizer_json():
    """The vocabulary as a tree of tokenizer.json."""
    tokens, merges = vocabulary()
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, token in enumerate(SPECIAL)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    start = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    post = {"type": "TemplateProcessing", "single": [start, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [start, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [" ".join(pair) for pair in merges]}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": byte_level, "post_processor": post, "decoder": dict(byte_level), "model": model}


def tokenizer_config():
    return {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
            "add_bos_token": True, "model_max_length": 256, "chat_template": TEMPLATE}


def write(folder):
    """Writes `f32.gguf`, `q8.gguf` and a folder for each architecture."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "f32.gguf").write_bytes(gguf().encode())
    (folder / "q8.gguf").write_bytes(gguf(quantised=True).encode())
    for name in architectures.NAMES:
        place = folder / name
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(json.dumps(architectures.config(name), indent=1))
        (place / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
        (place / "tokenizer_config.json").write_text(json.dumps(tokenizer_config()))
        (place / "model.safetensors").write_bytes(safetensors(tensors_of(name)))
