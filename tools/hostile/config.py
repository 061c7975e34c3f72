"""Damaged config.json (and generation_config.json) of every architecture."""
import json

import architectures
from case import ANYTHING, ERROR, OTHER, REFUSED, UNCHANGED_OR_REFUSED, Case, Family, Link, inspect

RUN = ["run", "--prompt-ids", "1,104,105,260,270,280", "-n", "8", "--temperature", "0", "--precision", "exact",
       "--ignore-eos", "--json"]
# Keys that say nothing about what is computed.
IDLE = {"architectures", "attention_dropout", "initializer_range", "use_cache", "transformers_version", "pad_token_id",
        "bos_token_id"}
LAYERS = {"num_hidden_layers", "n_layer"}
# A wrong size contradicts a tensor's shape.
SHAPES = {"vocab_size", "hidden_size", "n_embd", "kv_lora_rank", "q_lora_rank"}
# Without these there is nothing that a reader could compute by.
NEEDED = {"model_type", "hidden_size", "n_embd"}
STRANGE = [None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**32, 2**63, 2**64, 10**30, 1.5, -0.5, 1e308, "", "12",
           "default",
           [], [1], [[]], {}, {"a": 1}, "\x1b[31m", "x" * 100_000]


def key(rng, c):
    return rng.choice([k for k in c])


def layers(rng, c):
    name = next(k for k in c if k in LAYERS)
    c[name] = rng.choice([0, 1, 2, 4, 100, 10**6, 2**31, 2**32 - 1])
    return REFUSED


def shape(rng, c):
    name = rng.choice([k for k in c if k in SHAPES])
    c[name] = rng.choice([0, 1, c[name] - 1, c[name] + 1, c[name] * 2, 2**31, 2**32 - 1, -c[name]])
    return REFUSED


def number(rng, c):
    name = rng.choice([k for k in c if type(c[k]) in (int, float)])
    c[name] = rng.choice([0, -1, 1, c[name] + 1, c[name] * 2, c[name] * 1000, 2**31 - 1, 2**31, 2**32, 2**63, 1e-30,
                          1e30, 1e308])
    return UNCHANGED_OR_REFUSED if name in IDLE else ANYTHING


def strange(rng, c):
    name = key(rng, c)
    c[name] = rng.choice(STRANGE)
    return UNCHANGED_OR_REFUSED if name in IDLE else ANYTHING


def as_text(rng, c):
    name = rng.choice([k for k in c if type(c[k]) is int])
    c[name] = str(c[name])
    return UNCHANGED_OR_REFUSED


def removed(rng, c):
    name = key(rng, c)
    del c[name]
    return UNCHANGED_OR_REFUSED if name in IDLE else REFUSED if name in NEEDED else ANYTHING


def idle_key(rng, c):
    c[rng.choice(["zzz", "problem_type", "auto_map", "\x1b[2J", "k" * 10_000])] = rng.choice(STRANGE)
    return UNCHANGED_OR_REFUSED


def rope(rng, c):
    if "rope_parameters" not in c:
        return shape(rng, c)
    parameters = c["rope_parameters"]
    inner = rng.choice([k for k in parameters]) if rng.random() < 0.6 else rng.choice(
        ["factor", "rope_theta", "rope_type", "type", "partial_rotary_factor", "attention_factor", "mscale",
         "beta_fast",
         "original_max_position_embeddings", "long_factor", "short_factor", "low_freq_factor"])
    parameters[inner] = rng.choice([*STRANGE, "linear", "dynamic", "yarn", "longrope", "llama3", "mrope", "nonsense",
                                    1e-300,
                                    [1.0] * 4, [1.0] * 100_000])
    return ANYTHING


def rope_conflict(rng, c):
    if "rope_parameters" not in c or "full_attention" in c["rope_parameters"]:
        return layers(rng, c)
    c["rope_scaling"] = {"rope_type": "linear", "factor": rng.choice([2.0, 8.0])}
    c["rope_theta"] = 12345.0
    # Whoever takes the one must not do so unless the other says the same; some readers do take the older key.
    return frozenset([OTHER, ERROR])


def kind(rng, c):
    c["model_type"] = rng.choice(["llama", "qwen2", "gemma2", "gpt2", "mamba", "t5", "bert", "", "LLAMA", "\x1b[31m",
                                  7, None])
    return ANYTHING


def bidirectional(rng, c):
    if not c["model_type"].startswith("gemma"):
        return layers(rng, c)
    c["use_bidirectional_attention"] = True
    return REFUSED


def quantization(rng, c):
    c["quantization_config"] = rng.choice([{}, [], 1, {"quant_method": "mxfp4"}, {"quant_method": "gptq", "bits": 4},
                                           {"quant_method": "fp8", "weight_block_size": [0, 0]},
                                           {"quant_method": "\x1b[2J"}])
    return ANYTHING


def nested(rng, c):
    depth = rng.choice([10, 100, 1000, 100_000])
    c["zzz"] = "DEEP"
    return ("[" * depth + "]" * depth, UNCHANGED_OR_REFUSED)


def inside_text_config(rng, c):
    inner = dict(c)
    c.clear()
    c["text_config"] = inner
    if rng.random() < 0.7:
        c["model_type"] = rng.choice(["gemma3", "mistral3", "llava", inner["model_type"]])
    if rng.random() < 0.3:
        c["text_config"] = {"text_config": {"text_config": inner}}
    return ANYTHING


TREE = [layers, layers, shape, number, number, number, strange, strange, strange, as_text, removed, removed, idle_key,
        rope,
        rope, rope_conflict, kind, bidirectional, quantization, nested, inside_text_config]


def twice(rng, text, c):
    name = key(rng, c)
    value = c[name] if rng.random() < 0.5 else rng.choice(STRANGE)
    same = value == c[name] and type(value) is type(c[name]) or name in IDLE
    repeated = text[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}"
    # Two values for one key: Python takes the last, and nobody knows what was meant.
    return repeated.encode(), UNCHANGED_OR_REFUSED if same else ANYTHING


def truncated(rng, text, _c):
    return text[:rng.randrange(len(text))].encode(), REFUSED


def flipped(rng, text, _c):
    data = bytearray(text.encode())
    for _ in range(rng.choice([1, 2, 5])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data), ANYTHING


def encoded(rng, text, _c):
    return rng.choice([b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16"), text.encode() + b"\0", b"",
                       text.encode() + b"\n\n", b"[" + text.encode() + b"]", text.encode() * 2]), ANYTHING


def large(rng, text, _c):
    return text.encode() + b" " * rng.choice([10**5, 3 * 10**7]), UNCHANGED_OR_REFUSED


BYTES = [twice, twice, truncated, flipped, flipped, encoded, large]
GENERATION = [{"temperature": -1}, {"temperature": "hot"}, {"top_p": 7}, {"top_k": -1}, {"top_k": 2**63},
              {"eos_token_id": [[]]},
              {"eos_token_id": "x"}, {"eos_token_id": list(range(100_000))}, {"temperature": 1e308}, {"min_p": -1}, [],
              7,
              {"repetition_penalty": 0}, {"repetition_penalty": -3}, {"max_new_tokens": -1}, {"do_sample": "no"},
              {"stop_strings": "\x1b[31m"}]


def generation(rng):
    """A generation_config.json; greedy runs take nothing from it but the tokens that end a text, which are ignored."""
    data = json.dumps(rng.choice(GENERATION)).encode()
    if rng.random() < 0.3:
        data = data[:rng.randrange(len(data))] + rng.choice([b"", b"\xff", b"}"])
    return {"generation_config.json": data}, UNCHANGED_OR_REFUSED, "generation_config.json"


def make(rng, folder, _work):
    name = rng.choice(architectures.NAMES)
    files = {part: Link(str(folder / name / part))
             for part in ("tokenizer.json", "tokenizer_config.json", "model.safetensors")}
    tree = json.loads(json.dumps(architectures.config(name)))
    if rng.random() < 0.06:
        more, allow, what = generation(rng)
        files |= more
        data = json.dumps(tree).encode()
    else:
        mutate = rng.choice(TREE + BYTES)
        what = mutate.__name__
        if mutate in BYTES:
            data, allow = mutate(rng, json.dumps(tree), tree)
        else:
            allow = mutate(rng, tree)
            deep, allow = allow if isinstance(allow, tuple) else ("", allow)
            data = json.dumps(tree).replace('"DEEP"', deep).encode()
    files["config.json"] = data
    like = [*RUN, "--model", str(folder / name)]
    if rng.random() < 0.1:
        return inspect(f"{what} ({name})", ".", files, allow)
    return Case(f"{what} ({name})", [*RUN, "--model", "."], files, allow, like, ("tokens",))


FAMILY = Family("config", 1000, make)
