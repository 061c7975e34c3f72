#!/usr/bin/env python3
"""Compares this project's tokenizers with the reference library of `tokenizer.json`.

    python3 -m venv v && v/bin/pip install tokenizers==0.23.3
    cargo build --release -p yirage-model --example tokenize_lines
    v/bin/python tools/oracle/tokenizer_cases.py --ours target/release/examples/tokenize_lines --random 600 --texts 60

Random files: models x normalizers x pre-tokenizers x decoders x added tokens with their flags, made from --seed, each third
with less said in it and in the words of older releases. Real
ones: every tokenizer.json named behind the options. Texts are hostile: white space of all kinds, scripts, emoji,
combining marks, control characters, added tokens and pieces of them. Ids (with and without the tokens around a text) and
decoded texts (of what was encoded, and of random ids, with and without special tokens) must be equal. A file that ours
refuses is counted; one that the library refuses is left out. Exits with 1 where anything differs or where --refused is
exceeded. --golden FILE writes a small set for the test that needs no Python.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

os.environ.setdefault("RUST_BACKTRACE", "0")
import tokenizers  # noqa: E402


WORDS = ["hello", " the", "World", "'s", "'LL", "don't", "HTTPServer", "fooBar", "x_1", "123", "4567890", "3.14", "lo",
         " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\xa0", "\u3000", "\u2028", "\u0085", "{", "});", "//", "#[a]",
         "日本語", "今天", "カタカナ", "안녕", "мир", "Привет", "مرحبا", "नमस्ते", "🙂", "👩‍👩‍👧", "e\u0301", "é", "ﬁ", "Å", "ǅ",
         "½²", "ⅷ", "Ⓐ", "\u200d", "\u200b", "\ufeff", "\ufffd", "ſ", "ß", "İ", "Σας", "a", "b", "ab", "low", "lower",
         "newest", "-", "--", "_", "▁", "Ġ", "$€", "!?", "。", "¿", "℻", "\x00", "\x07", "<", ">", "</w>", "##", "<0x41>",
         "<unk>", "<s>", "</s>", "<m>", "<mask>", " <mask> ", "[A]", "[a]", "token", "to", "ken", "I", "K", "\u212a"]


def text(dice):
    out = []
    for _ in range(dice.randrange(0, 12)):
        kind = dice.randrange(8)
        if kind == 0:
            out.append(chr(dice.randrange(1, 0x250)))
        elif kind == 1:
            out.append(chr(dice.randrange(0x250, 0x2200)))
        elif kind == 2:
            out.append(dice.choice("abcdehlorstw ▁Ġ"))
        else:
            out.append(dice.choice(WORDS))
    return "".join(c for c in "".join(out) if unicodedata.category(c) not in ("Cn", "Cs"))


def alphabet(dice):
    letters = list("abcdefghijklmnorstuvwxyz" "ABHILSTWP" "0123456789" "'.,!?-_#<>/[]{}()$;:" "▁Ġ éßмирПв日本語今天カ나🙂 \n\t")
    dice.shuffle(letters)
    return letters[: dice.randrange(12, len(letters))]


def byte_alphabet():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(0x100 + n) for n, b in enumerate(rest)}}


def pieces(dice, letters, count):
    out = []
    for _ in range(count):
        size = dice.choice([2, 2, 2, 3, 3, 4, 5])
        out.append("".join(dice.choice(letters) for _ in range(size)))
    return [*out, *(w for w in ["lo", "low", "er", "th", "he", "hello", "▁the", "to", "ken"] if dice.random() < 0.6)]


def bytes_of(dice):
    """Byte tokens: all of them, none, or all but some."""
    kind = dice.randrange(4)
    if kind == 0:
        return []
    gone = set() if kind == 1 else {dice.randrange(256) for _ in range(dice.choice([1, 3, 40]))}
    return [f"<0x{b:02X}>" for b in range(256) if b not in gone]


def bpe(dice, byte_level=False):
    letters = list(byte_alphabet().values()) if byte_level else alphabet(dice)
    if byte_level and dice.random() < 0.3:
        letters = dice.sample(letters, 200)
    prefix = "" if byte_level or dice.random() < 0.8 else "##"
    suffix = "</w>" if dice.random() < 0.2 else ""
    vocab = {}

    def add(token):
        return vocab.setdefault(token, len(vocab))

    with_unk = dice.random() < 0.6
    if with_unk:
        add("<unk>")
    fallback = dice.random() < 0.4
    for token in [*(bytes_of(dice) if fallback else []), *letters]:
        add(token)
    for letter in letters:
        for before in {"", prefix}:
            for behind in {"", suffix}:
                if (before or behind) and dice.random() < 0.8:
                    add(before + letter + behind)
    merges = []
    for _ in range(dice.randrange(0, 120)):
        left, right = (dice.choice(list(vocab)) for _ in range(2))
        if left == "<unk>" or right == "<unk>" or right.startswith("<0x") or left.startswith("<0x") or " " in left + right:
            continue
        if prefix and not right.startswith(prefix):
            continue
        joined = left + right[len(prefix):]
        if len(joined) > 12:
            continue
        add(joined)
        merges.append([left, right])
    if dice.random() < 0.2:
        merges.extend(dice.sample(merges, len(merges) // 4))
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>" if with_unk else None,
            "continuing_subword_prefix": prefix or None, "end_of_word_suffix": suffix or None,
            "fuse_unk": dice.random() < 0.5, "byte_fallback": fallback, "ignore_merges": dice.random() < 0.3,
            "vocab": vocab, "merges": merges if dice.random() < 0.7 else [" ".join(m) for m in merges]}


def wordpiece(dice):
    letters = alphabet(dice)
    tokens = ["[UNK]", *letters, *("##" + c for c in letters if dice.random() < 0.9)]
    tokens += [("##" if dice.random() < 0.5 else "") + p for p in pieces(dice, letters, 40)]
    vocab = {token: id for id, token in enumerate(dict.fromkeys(tokens))}
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": dice.choice([100, 100, 5]), "vocab": vocab}


def wordlevel(dice):
    tokens = ["<unk>", *(w.strip() or "x" for w in WORDS), "hello", "the", "a", "b", *alphabet(dice)]
    vocab = {token: id for id, token in enumerate(dict.fromkeys(tokens))}
    return {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}


def unigram(dice):
    letters = alphabet(dice)
    fallback = dice.random() < 0.4
    tokens = ["<unk>", "<s>", *(bytes_of(dice) if fallback else []), *letters, *pieces(dice, letters, 60)]
    scores = [0.0 if t.startswith("<") else -round(dice.uniform(0, 12), dice.choice([1, 1, 4])) for t in tokens]
    if dice.random() < 0.2:
        tokens.append(dice.choice(tokens[2:]))
        scores.append(-1.0)
    return {"type": "Unigram", "unk_id": 0, "vocab": [list(p) for p in zip(tokens, scores)], "byte_fallback": fallback}


def charsmap(dice):
    """A normalisation table in the layout of SentencePiece: every state of the trie has a block of 256 units."""
    entries = {"ﬁ": "fi", "½": "1⁄2", "\u3000": " ", "\xa0": " ", "é": "e", "e\u0301": "è", "ǅ": "dž", "A": "a", "\t": " ",
               "\u200b": "", "Σ": "σ", "カ": "か", "K": "k"}
    entries = {k: v for k, v in entries.items() if dice.random() < 0.7} or {"A": "a"}
    blob, places = b"", {}
    for key, value in entries.items():
        places[key.encode()] = len(blob)
        blob += value.encode() + b"\0"
    states = sorted({k[:n] for k in places for n in range(len(k) + 1)}, key=len)
    block = {state: 256 * (n + 1) for n, state in enumerate(states)}
    units = [0] * (256 * (len(states) + 2))

    def unit(label, at, state):
        offset = at ^ block[state]
        assert offset < 1 << 21
        units[at] = offset << 10 | (1 << 8 if state in places else 0) | label

    unit(0, 0, b"")
    for state in states:
        if state:
            unit(state[-1], block[state[:-1]] ^ state[-1], state)
        if state in places:
            units[block[state]] = places[state] | 1 << 31
    trie = b"".join(struct.pack("<I", u) for u in units)
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + blob).decode()


PATTERNS = [r"\s+", r"\w+", r"\d{1,3}", r"\d{,2}", r"[^\w\s]+", r"\p{L}+", r"(?i:'s|'t|'ll)", r"a{2}{2}", r"\s+(?!\S)|\s+",
            r"(?<=\d)(?=(?:\d{3})+\b)", r"\b", r"[[:alpha:]]+", r"^", r"$", r".", r"a*", r"l+?o", r"lo?+", r"[a-y&&[^l]]+", "x{",
            r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+", r"\h+", r"(?>ab|a)b?",
            r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", r"[\p{L}\p{M}]+", r"\p{Han}+|\p{Hiragana}", r" {2,}",
            r"(?m).+", r"(l)\1", r"[^\x{0}-\x{7f}]+", r"[[:punct:]]", r"a(?i)B|c", r"\R", "é", r"[\-\]a]", r"(?:he|l){2}+", "l{1}?"]


def pattern(dice):
    return {"Regex": dice.choice(PATTERNS)} if dice.random() < 0.7 else {"String": dice.choice([" ", "a", "lo", "-", "▁", "ab", ""])}


def normalizer(dice, depth=0):
    kinds = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Nmt", "Replace", "Prepend", "BertNormalizer",
             "Precompiled", "Sequence", "ByteLevel"]
    kind = dice.choice(kinds[: -1 if dice.random() < 0.9 else None])
    flip = lambda: dice.random() < 0.5  # noqa: E731
    match kind:
        case "Strip":
            return {"type": kind, "strip_left": flip(), "strip_right": flip()}
        case "Replace":
            return {"type": kind, "pattern": pattern(dice), "content": dice.choice(["", " ", "▁", "x", "-"])}
        case "Prepend":
            return {"type": kind, "prepend": dice.choice(["▁", " ", "x"])}
        case "BertNormalizer":
            return {"type": kind, "clean_text": flip(), "handle_chinese_chars": flip(),
                    "strip_accents": dice.choice([None, True, False]), "lowercase": flip()}
        case "Precompiled":
            return {"type": kind, "precompiled_charsmap": charsmap(dice)}
        case "Sequence" if depth < 2:
            return {"type": kind, "normalizers": [normalizer(dice, depth + 1) for _ in range(dice.randrange(4))]}
        case "Sequence":
            return {"type": "NFC"}
    return {"type": kind}


BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def metaspace(dice):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": dice.choice(["always", "first", "never"]),
            "split": dice.random() < 0.7}


def pre_tokenizer(dice, depth=0):
    flip = lambda: dice.random() < 0.5  # noqa: E731
    kind = dice.choice(["Whitespace", "WhitespaceSplit", "Metaspace", "Metaspace", "Punctuation", "Digits", "CharDelimiterSplit",
                        "UnicodeScripts", "FixedLength", "Split", "Split", "Sequence", "Sequence", "ByteLevel", "BertPreTokenizer"])
    match kind:
        case "Metaspace":
            return metaspace(dice)
        case "Punctuation":
            return {"type": kind, "behavior": dice.choice(BEHAVIORS)}
        case "Digits":
            return {"type": kind, "individual_digits": flip()}
        case "CharDelimiterSplit":
            return {"type": kind, "delimiter": dice.choice(" -a")}
        case "FixedLength":
            return {"type": kind, "length": dice.choice([1, 3, 5])}
        case "Split":
            return {"type": kind, "pattern": pattern(dice), "behavior": dice.choice(BEHAVIORS), "invert": flip()}
        case "Sequence" if depth < 2:
            return {"type": kind, "pretokenizers": [pre_tokenizer(dice, depth + 1) for _ in range(dice.randrange(4))]}
        case "Sequence":
            return {"type": "Whitespace"}
        case "ByteLevel":
            return {"type": kind, "add_prefix_space": flip(), "trim_offsets": flip(), "use_regex": flip()}
    return {"type": kind}


def decoder(dice, depth=0):
    flip = lambda: dice.random() < 0.5  # noqa: E731
    kind = dice.choice(["ByteLevel", "BPEDecoder", "WordPiece", "Metaspace", "CTC", "Replace", "Strip", "Fuse", "ByteFallback",
                        "Sequence", "Sequence"])
    match kind:
        case "BPEDecoder":
            return {"type": kind, "suffix": dice.choice(["</w>", "</w>", "o"])}
        case "WordPiece":
            return {"type": kind, "prefix": "##", "cleanup": flip()}
        case "Metaspace":
            return metaspace(dice)
        case "CTC":
            return {"type": kind, "pad_token": dice.choice(["<unk>", "a"]), "word_delimiter_token": "▁", "cleanup": flip()}
        case "Replace":
            return {"type": kind, "pattern": pattern(dice), "content": dice.choice(["", " ", "x"])}
        case "Strip":
            return {"type": kind, "content": dice.choice(" ▁al"), "start": dice.randrange(3), "stop": 0}
        case "Sequence" if depth == 0:
            return {"type": kind, "decoders": [decoder(dice, 1) for _ in range(dice.randrange(5))]}
        case "Sequence":
            return {"type": "Fuse"}
    return {"type": kind}


def added(dice, vocab):
    """Added tokens with their flags: some of them tokens of the model, some that overlap."""
    contents = ["<m>", "<mask>", "[A]", "tok", "token", " sp", "\n", "  ", "é", "to ken", "<s>", "lo", "the", "日", "▁x", "Ke", "-"]
    next_id, out = max(vocab.values(), default=-1) + 1, []
    for content in dice.sample(contents, dice.randrange(7)):
        flip = lambda p=0.3: dice.random() < p  # noqa: E731
        id = vocab.get(content, next_id)
        next_id += id == next_id
        out.append({"id": id, "content": content, "single_word": flip(), "lstrip": flip(), "rstrip": flip(),
                    "normalized": flip(0.4), "special": flip(0.5)})
    return sorted(out, key=lambda t: t["id"])


def processor(dice, vocab):
    tokens = dice.sample(list(vocab.items()), min(2, len(vocab)))
    if len(tokens) < 2 or dice.random() < 0.5:
        return None
    (cls, cls_id), (sep, sep_id) = tokens
    match dice.randrange(4):
        case 0:
            return {"type": "BertProcessing", "sep": [sep, sep_id], "cls": [cls, cls_id]}
        case 1:
            return {"type": "RobertaProcessing", "sep": [sep, sep_id], "cls": [cls, cls_id], "trim_offsets": True,
                    "add_prefix_space": True}
        case 2:
            return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    single = [{"SpecialToken": {"id": cls, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": sep, "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": single[dice.randrange(2):],
                "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in tokens}}
    if dice.random() < 0.3:
        byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
        return {"type": "Sequence", "processors": [byte_level, template]}
    return template


def random_file(dice):
    byte_level = dice.random() < 0.2
    model = bpe(dice, byte_level) if byte_level else dice.choice([bpe, bpe, wordpiece, wordlevel, unigram, unigram])(dice)
    vocab = model["vocab"]
    if isinstance(vocab, list):
        vocab = {token: id for id, (token, _) in enumerate(vocab)}
    pre = {"type": "ByteLevel", "add_prefix_space": dice.random() < 0.5, "trim_offsets": True, "use_regex": True}
    if not byte_level:
        pre = pre_tokenizer(dice) if dice.random() < 0.8 else None
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(dice, vocab),
            "normalizer": normalizer(dice) if dice.random() < 0.6 else None, "pre_tokenizer": pre,
            "post_processor": processor(dice, vocab), "decoder": decoder(dice) if dice.random() < 0.85 else None, "model": model}


def sections(node):
    """Every object in a value, outermost first."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        yield from sections(inner)


def older(dice, section, replacement):
    """A section of a file as older releases wrote it, and with settings that few files have."""
    match section.get("type"):
        case "Metaspace":
            section["replacement"] = replacement
            if dice.random() < 0.4:
                scheme = section.pop("prepend_scheme")
                section["add_prefix_space"] = scheme != "never"
                if dice.random() < 0.5:
                    section["prepend_scheme"] = scheme
                if dice.random() < 0.5:
                    del section["split"]
        case "ByteLevel":
            for key in ("use_regex", "trim_offsets"):
                if dice.random() < 0.3:
                    section.pop(key, None)
        case "Strip" if "content" in section:
            section["stop"] = dice.randrange(3)
        case "CTC":
            section["word_delimiter_token"] = dice.choice(["|", "a", "<s>"])
        case "WordPiece":
            section["prefix"] = dice.choice(["", "@@", "##"])
        case "Prepend":
            section["prepend"] = dice.choice(["x", "ab\n", "é"])
        case "Punctuation" | "Digits" if dice.random() < 0.4:
            section.pop("behavior", None)
            section.pop("individual_digits", None)
        case "FixedLength":
            section["length"] = dice.choice([2, 7, 1000])


def varied(dice, file):
    """A file with less said in it: a model without its type, fields left out that have their default, other names of
    what is unknown."""
    model = file["model"]
    if dice.random() < 0.4:
        del model["type"]
    for key in ("dropout", "fuse_unk", "byte_fallback", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix"):
        if not model.get(key, True) and dice.random() < 0.4:
            del model[key]
    if "unk_id" in model:
        model["unk_id"] = dice.choice([None, 1, 0, len(model["vocab"]) - 1])
    if "max_input_chars_per_word" in model:
        prefix = dice.choice(["##", "", "@@", "_"])
        pieces = {prefix + token[2:] if token.startswith("##") else token: id for token, id in model["vocab"].items()}
        if len(pieces) == len(model["vocab"]):
            model.update(vocab=pieces, continuing_subword_prefix=prefix)
        model["max_input_chars_per_word"] = dice.choice([0, 1, 2, 100, 100])
    elif model.get("unk_token") and "a" in model["vocab"] and dice.random() < 0.2:
        model["unk_token"] = "a"
    replacement = dice.choice(["▁", "▁", "_", "Ġ", " ", "a"])
    for section in sections({key: value for key, value in file.items() if key != "model"}):
        older(dice, section, replacement)
    for key in ("version", "truncation", "padding", "decoder", "post_processor", "normalizer", "pre_tokenizer"):
        if (file[key] is None or key == "version") and dice.random() < 0.3:
            del file[key]
    return file


def reference(path, texts, dice):
    """What the library makes of a file, or None where it does not load it."""
    try:
        library = tokenizers.Tokenizer.from_file(str(path))
    except Exception:
        return None
    if library.normalizer:
        # Which of two tokens wins that are one when normalised depends on the library's hashes; one that is nothing then it
        # finds without end.
        searched = [t.content for t in library.get_added_tokens_decoder().values() if t.normalized]
        searched = [library.normalizer.normalize_str(content) for content in searched]
        if len(set(searched)) < len(searched) or "" in searched:
            return None
    library.no_padding()
    library.no_truncation()

    def attempt(call):
        try:
            return call()
        except BaseException as error:  # The library panics on some of its own files.
            if isinstance(error, KeyboardInterrupt):
                raise
            return None

    encoded = [attempt(lambda: [library.encode(t, add_special_tokens=s).ids for s in (False, True)]) for t in texts]
    size = library.get_vocab_size()
    lists = [pair[1] for pair in encoded if pair] + [[dice.randrange(size + 2) for _ in range(dice.randrange(9))] for _ in texts]
    decoded = [attempt(lambda: [library.decode(ids, skip_special_tokens=s) for s in (False, True)]) for ids in lists]
    return encoded, lists, decoded


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, path, texts, ids):
        self.process.stdin.write(json.dumps({"file": str(path), "texts": texts, "ids": ids}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Counts:
    def __init__(self):
        self.files = self.refused = self.encodings = self.decodings = self.wrong = 0
        self.reasons, self.shown = {}, 0

    def differ(self, show, what, path, given, ours, wanted):
        self.wrong += 1
        if self.shown < show:
            self.shown += 1
            print(f"{what} {path}: {given!r}\n  ours   {ours!r}\n  theirs {wanted!r}")


def compare(ours, path, texts, dice, counts, show):
    wanted = reference(path, texts, dice)
    if wanted is None:
        return None
    encoded, lists, decoded = wanted
    found = ours.ask(path, texts, lists)
    counts.files += 1
    if "error" in found:
        counts.refused += 1
        reason = found["error"].split(": ", 1)[-1]
        counts.reasons[reason] = counts.reasons.get(reason, 0) + 1
        return None
    before = counts.wrong
    for given, theirs, mine in zip(texts, encoded, found["encoded"]):
        if theirs is None:
            continue
        counts.encodings += 1
        if mine != theirs:
            counts.differ(show, "encode", path, given, mine, theirs)
    for given, theirs, mine in zip(lists, decoded, found["decoded"]):
        if theirs is None:
            continue
        counts.decodings += 1
        if mine != theirs:
            counts.differ(show, "decode", path, given, mine, theirs)
    return wanted if counts.wrong == before else None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ours", required=True)
    options.add_argument("--random", type=int, default=400, help="random files")
    options.add_argument("--texts", type=int, default=50, help="texts for each random file")
    options.add_argument("--real-texts", type=int, default=2000, help="texts for each real file")
    options.add_argument("--seed", type=int, default=45)
    options.add_argument("--show", type=int, default=12)
    options.add_argument("--refused", type=float, default=0.02, help="the share of random files that may be refused")
    options.add_argument("--golden", type=pathlib.Path)
    options.add_argument("--keep", type=pathlib.Path, help="a folder for the random files")
    options.add_argument("real", nargs="*", type=pathlib.Path)
    given = options.parse_args()
    ours, counts, golden = Ours(given.ours), Counts(), []
    folder = given.keep or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(given.random):
        dice = random.Random(given.seed * 1_000_003 + number)
        file = random_file(dice)
        if number % 3 == 2:
            file = varied(random.Random(f"{given.seed} {number}"), file)
        path = folder / f"{number}.json"
        path.write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
        texts = [text(dice) for _ in range(given.texts)]
        right = compare(ours, path, texts, dice, counts, given.show)
        if right:
            encoded, lists, decoded = right
            kept = [[t, e] for t, e in zip(texts, encoded) if e is not None][:12]
            read = [[i, d] for i, d in zip(lists, decoded) if d is not None]
            golden.append({"file": file, "encoded": kept, "decoded": dice.sample(read, min(8, len(read)))})
    for path in given.real:
        dice = random.Random(given.seed)
        before = counts.wrong, counts.encodings
        compare(ours, path, [text(dice) for _ in range(given.real_texts)], dice, counts, given.show)
        print(f"{path}: {counts.wrong - before[0]} wrong of {counts.encodings - before[1]} encodings and their decodings")
    if given.golden:
        given.golden.write_text("".join(json.dumps(g, ensure_ascii=False, separators=(",", ":")) + "\n" for g in golden), "utf-8")
    for reason, times in sorted(counts.reasons.items(), key=lambda r: -r[1])[:20]:
        print(f"refused {times}: {reason}")
    print(f"tokenizers {tokenizers.__version__}, seed {given.seed}: {counts.files} files ({counts.refused} refused), "
          f"{counts.encodings} encodings, {counts.decodings} decodings, {counts.wrong} wrong")
    return int(counts.wrong > 0 or counts.refused > given.refused * max(1, given.random))


if __name__ == "__main__":
    sys.exit(main())
