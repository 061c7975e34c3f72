"""Damaged and hostile tokenizer.json and tokenizer_config.json."""
import copy
import json

import base
from case import ANYTHING, UNCHANGED_OR_REFUSED, Case, Family, Link

IDS = ["run", "--prompt-ids", "1,104,105,260,270,280", "-n", "6", "--temperature", "0", "--precision", "exact",
       "--ignore-eos",
       "--json"]
TEXTS = ["the cat was happy", " ", "", "a" * 2000, "\u0130\u00df\ufb03\u0390" * 50, "a b " * 500, "x" + "\u0301" * 1000,
         "1234567890" * 100, "</s><s>", "\n\r\t  \u2028\u00a0", "a!" * 1500]
# Patterns whose matching by going back takes squared time or worse.
PATTERNS = ["(a+)+$", "(a|a)*b", "(a*)*c", "(?:a?){50}a{50}", "a{1,1000}{1,1000}", "(" * 5000 + "a" + ")" * 5000, "[",
            "(?<=a+)b",
            "(?=(a+))\\1", "\\p{NoSuch}", "a{100000}", "(?i:" * 300 + ")" * 300, "", "\\", "(?!)", "x*", "\x1b[31m",
            ".*.*.*.*=",
            "(.*?,){30}P", "(?:(?:a{1,100}){1,100}){1,100}", "\\w*\\d*\\w*!", "[^x]*[^y]*[^z]*$", "(a+)(?=a*b)",
            "|".join("ab"[i % 2] * (i % 97)
                                                                                                    for i in range(3000))]
STRANGE = [None, True, 0, -1, 2**32, 2**64, 1.5, "", "x", "\x1b[31m", [], {}, [[]], "\u0000", "y" * 100_000]


def pattern(rng, t):
    t["pre_tokenizer"] = {"type": "Split", "pattern": {rng.choice(["Regex", "String"]): rng.choice(PATTERNS)},
                          "behavior": rng.choice(["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                                  "Contiguous"]),
                          "invert": rng.random() < 0.3}


def many_patterns(rng, t):
    one = {"type": "Split", "pattern": {"Regex": rng.choice([" ?[^\\s]+", "\\s+(?!\\S)|\\s+", ".", "(a|b)+"])},
           "behavior": "Isolated", "invert": False}
    t["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [one] * rng.choice([10, 200, 5000])}


def sequence(rng, t):
    depth = rng.choice([3, 30, 60, 100_000])
    kind, key = rng.choice([("pre_tokenizer", "pretokenizers"), ("normalizer", "normalizers"), ("decoder", "decoders"),
                            ("post_processor", "processors")])
    t[kind] = "DEEP"
    return '{"type": "Sequence", "%s": [' % key * depth + "]}" * depth


def normalizer(rng, t):
    long = rng.choice(["", "a", "b" * 1000, "b" * 10**6, "\x1b["])
    parts = [{"type": "Replace", "pattern": {"String": rng.choice(["", "a", " "])}, "content": long},
             {"type": "Replace", "pattern": {"Regex": rng.choice(PATTERNS)}, "content": long},
             {"type": "Prepend", "prepend": long},
             {"type": "NFKC"}, {"type": "NFD"}, {"type": "Lowercase"},
             {"type": "Strip", "strip_left": True, "strip_right": 7},
             {"type": "Precompiled", "precompiled_charsmap": rng.choice(["", "AAAA", "!!", "A" * 100_000])},
             {"type": "BertNormalizer"}, {"type": "Nonsense"}, {}, 7, None]
    count = rng.choice([1, 2, 20])
    t["normalizer"] = {"type": "Sequence", "normalizers": [rng.choice(parts) for _ in range(count)]}


def doubling(rng, t):
    one = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    t["normalizer"] = {"type": "Sequence", "normalizers": [one] * rng.choice([10, 20, 40, 60])}


def vocab(rng, t):
    words = t["model"]["vocab"]
    match rng.randrange(6):
        case 0:
            del words[rng.choice(list(words))]
        case 1:
            words[rng.choice(list(words))] = rng.choice([-1, 0, 1, base.VOCAB, 10**6, 2**32 - 1, 2**32, 2**63, 1.5,
                                                         "7", None])
        case 2:
            words |= {f"extra{i}": base.VOCAB + i for i in range(rng.choice([1, 1000, 200_000]))}
        case 3:
            words["z" * rng.choice([1000, 10**6])] = base.VOCAB
        case 4:
            t["model"]["vocab"] = rng.choice(STRANGE)
        case _:
            ids = list(words.values())
            rng.shuffle(ids)
            t["model"]["vocab"] = dict(zip(words, ids))


def merges(rng, t):
    pairs = t["model"]["merges"]
    match rng.randrange(6):
        case 0:
            pairs[rng.randrange(len(pairs))] = rng.choice(["", " ", "a", "a b c", "no such", "\u0120 \u0120",
                                                           "x" * 10**5 + " y", 7,
                                                           None, ["a"], ["a", "b", "c"], ["q", "zz"]])
        case 1:
            pairs.reverse()
        case 2:
            t["model"]["merges"] = pairs * rng.choice([2, 5000])
        case 3:
            t["model"]["merges"] = rng.choice(STRANGE)
        case 4:
            # One letter over and over: every merge applies everywhere.
            doubled = ["a" * 2**i for i in range(12)]
            t["model"]["merges"] = [f"{w} {w}" for w in doubled]
            t["model"]["vocab"] |= {w * 2: base.VOCAB + i for i, w in enumerate(doubled)}
        case _:
            rng.shuffle(pairs)


def added(rng, t):
    token = {"id": 3, "content": "a", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True}
    match rng.randrange(6):
        case 0:
            token |= {"content": rng.choice(["", " ", "a", "\x1b[31m", "x" * 10**6, "\u0000"]), "lstrip": True,
                      "rstrip": True}
        case 1:
            token["id"] = rng.choice([-1, 0, 10**6, 2**32 - 1, 2**32, "3", None])
        case 2:
            token[rng.choice(list(token))] = rng.choice(STRANGE)
        case 3:
            t["added_tokens"] += [dict(token, id=base.VOCAB + i, content=f"<{i}>")
                                  for i in range(rng.choice([100, 50_000]))]
        case 4:
            t["added_tokens"] += [dict(token, id=base.VOCAB + i, content="a" * (i + 1) + "b") for i in range(2000)]
        case _:
            t["added_tokens"] = rng.choice(STRANGE)
            return
    t["added_tokens"].append(token)


def post(rng, t):
    p = t["post_processor"]
    match rng.randrange(4):
        case 0:
            p["single"] = [p["single"][0]] * rng.choice([0, 2, 1000, 200_000]) + p["single"][1:]
        case 1:
            p["special_tokens"] = rng.choice([{}, None, {"<s>": {"id": "<s>", "ids": [base.VOCAB + 5],
                                                                 "tokens": ["<s>"]}},
                                              {"<s>": {"id": "<s>", "ids": [1] * 100_000, "tokens": ["<s>"]}}])
        case 2:
            t["post_processor"] = rng.choice([{"type": "ByteLevel"}, {"type": "RobertaProcessing"},
                                              {"type": "\x1b[31m"}, 7, [], {}])
        case _:
            p["single"] = rng.choice(STRANGE)


def model(rng, t):
    m = t["model"]
    name = rng.choice(["type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                       "byte_fallback",
                       "ignore_merges"])
    m[name] = rng.choice([*STRANGE, "WordPiece", "Unigram", "WordLevel", "</s>", "##"])


def component(rng, t):
    name = rng.choice(list(t))
    t[name] = rng.choice(STRANGE)


def decoder(rng, t):
    t["decoder"] = rng.choice([{"type": "Replace", "pattern": {"String": ""}, "content": "x" * 10**5}, {"type": "Fuse"},
                               {"type": "Strip", "content": " ", "start": 2**63, "stop": 2**63},
                               {"type": "ByteFallback"},
                               {"type": "Strip", "content": "", "start": 1, "stop": 0}, {"type": "WordPiece"},
                               {"type": "\x1b[2J"}])


TREE = [pattern, pattern, pattern, many_patterns, sequence, normalizer, normalizer, doubling, vocab, vocab, merges,
        merges, added,
        added, post, model, component, decoder]


def flipped(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 3, 10])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def truncated(rng, data):
    return data[:rng.randrange(len(data))]


def repeated(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + data[at:at + rng.randrange(200)] * rng.choice([2, 50]) + data[at:]


def encoded(rng, data):
    return rng.choice([b"\xef\xbb\xbf" + data, data + b"\0", b"", b"null", b"[]", b"\xff\xfe", data * 2,
                       data + b" " * 10**7])


BYTES = [flipped, flipped, truncated, repeated, encoded]


def settings(rng):
    """A damaged tokenizer_config.json."""
    c = base.tokenizer_config()
    c[rng.choice([*c, "added_tokens_decoder", "extra_special_tokens", "add_eos_token",
                  "clean_up_tokenization_spaces"])] = rng.choice(
        [*STRANGE, {"1": {"content": "\x1b[2J"}}, {"x": {}}, {"-1": {"content": "q"}}, {"content": "</s>"},
         {"content": 7}])
    data = json.dumps(c).encode()
    return rng.choice(BYTES)(rng, data) if rng.random() < 0.3 else data


def make(rng, folder, _work):
    llama, files = folder / "llama", {}
    if rng.random() < 0.12:
        what, files["tokenizer_config.json"] = "tokenizer_config.json", settings(rng)
        files["tokenizer.json"] = Link(str(llama / "tokenizer.json"))
    else:
        mutate = rng.choice(TREE + BYTES)
        what = mutate.__name__
        tree, deep = copy.deepcopy(base.tokenizer_json()), None
        if mutate in TREE:
            deep = mutate(rng, tree)
        data = json.dumps(tree).replace('"DEEP"', deep or "").encode()
        files["tokenizer.json"] = mutate(rng, data) if mutate in BYTES else data
        files["tokenizer_config.json"] = Link(str(llama / "tokenizer_config.json"))
    files |= {part: Link(str(llama / part)) for part in ("config.json", "model.safetensors")}
    match rng.randrange(8):
        case 0:
            return Case(f"run by ids: {what}", [*IDS, "--model", "."], files, UNCHANGED_OR_REFUSED,
                        [*IDS, "--model", str(llama)],
                        ("tokens",))
        case 1:
            return Case(f"inspect: {what}", ["inspect", "--model", "."], files)
        case 2:
            return Case(f"decode: {what}",
                        ["tokenize", "--model", ".", "--decode", "--ids", "1,2,3,100,260,300,319", "--json"], files)
        case 3:
            return Case(f"run: {what}", ["run", "--model", ".", "--prompt", "the cat", "-n", "4", "--json"], files)
    text = rng.choice(TEXTS) if rng.random() < 0.7 else rng.choice(["a", "ab", "a b", "1!"]) * 15_000
    return Case(f"encode: {what}", ["tokenize", "--model", ".", "--text", text, "--json"], files, ANYTHING)


FAMILY = Family("tokenizer", 1000, make)
