"""From text files to a tokenizer and arrays of tokens.

A corpus file holds books one after the other, an empty line between two, one paragraph a line. Whole books are held
out: a paragraph of a book that was read in training says little about text never seen.

PREPARED/ gets tokenizer.json; train, validation and test .u16 (tokens, little endian, the end token after each book);
paragraphs.u32 (where a paragraph of the training text begins) and prepared.json (what is where, and hashes).
"""
import hashlib
import json
import lzma
import random

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
# Fixed before any model was trained: the ten samples are these, as they come.
PROMPTS = [
    "Once upon a time there was a little girl who", "The boy looked at his mother and said, \"", "In the deep forest",
    "There was once a king", "\"I am not afraid,\" said", "One winter evening", "The old ship", "A fox and a hen",
    "When the children woke up", "It was the last day of",
]


def books(folder):
    """Texts of all books, and a hash of everything read."""
    files = sorted(p for p in folder.iterdir() if p.name.endswith((".txt", ".txt.xz")))
    if not files:
        raise SystemExit(f"{folder} holds no .txt or .txt.xz file: give the folder of the corpus")
    digest, found = hashlib.sha256(), []
    for path in files:
        raw = path.read_bytes()
        data = lzma.decompress(raw) if path.suffix == ".xz" else raw
        digest.update(data)
        found += [book.strip("\n") for book in data.decode("utf-8").split("\n\n")]
    return [book for book in found if book], digest.hexdigest()


def divide(texts, share, seed):
    """Training, validation and test books; at least one book each."""
    order = list(range(len(texts)))
    random.Random(seed).shuffle(order)
    each = max(1, round(len(texts) * share / 2))
    if len(texts) < 2 * each + 1:
        raise SystemExit(f"{len(texts)} books are too few to hold out {2 * each}: give more text or a smaller --held-out")
    parts = {"validation": order[:each], "test": order[each:2 * each], "train": order[2 * each:]}
    return {name: [texts[i] for i in sorted(members)] for name, members in parts.items()}


def train_tokenizer(texts, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator((line for text in texts for line in text.split("\n")), trainer)
    return tokenizer


def encode(tokenizer, texts):
    """Tokens of all books with the end token after each, and where paragraphs begin."""
    end, tokens, starts, at = tokenizer.token_to_id(END), [], [], 0
    for text in texts:
        lines = text.split("\n")
        # The line break belongs to the paragraph that it ends, as in running text.
        pieces = [line + "\n" for line in lines[:-1]] + lines[-1:]
        for encoding in tokenizer.encode_batch(pieces):
            starts.append(at)
            tokens.append(np.array(encoding.ids, dtype=np.uint16))
            at += len(encoding.ids)
        tokens.append(np.array([end], dtype=np.uint16))
        at += 1
    return np.concatenate(tokens), np.array(starts, dtype=np.uint32)


def prepare(options):
    """The `prepare` step."""
    if not 300 <= options.vocabulary <= 65536:
        raise SystemExit(f"--vocabulary {options.vocabulary}: 300 to 65536 fit the bytes and 16-bit tokens")
    texts, digest = books(options.corpus)
    parts = divide(texts, options.held_out, options.seed)
    tokenizer = train_tokenizer(parts["train"], options.vocabulary)
    options.prepared.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.prepared / "tokenizer.json"))
    about = dict(corpus_sha256=digest, vocabulary=tokenizer.get_vocab_size(), end=tokenizer.token_to_id(END),
                 prompts=[dict(text=p, ids=tokenizer.encode(p).ids) for p in PROMPTS], parts={})
    for name, members in parts.items():
        tokens, starts = encode(tokenizer, members)
        tokens.astype("<u2").tofile(options.prepared / f"{name}.u16")
        if name == "train":
            starts.astype("<u4").tofile(options.prepared / "paragraphs.u32")
        size = sum(len(text.encode()) for text in members)
        about["parts"][name] = dict(books=len(members), bytes=size, tokens=len(tokens))
        print(f"{name}: {len(members)} books, {size} bytes, {len(tokens)} tokens, {size / len(tokens):.2f} bytes a token")
    (options.prepared / "prepared.json").write_text(json.dumps(about, indent=1) + "\n")
