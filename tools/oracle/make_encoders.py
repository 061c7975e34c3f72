"""Tiny encoders with a tokenizer, and what transformers and sentence-transformers make of texts; and of a real model.

usage: make_encoders.py OUT_DIR [MINILM_DIR]      (needs torch, transformers, sentence-transformers, tokenizers, numpy)

OUT_DIR gets embed.json and score.json, the same of RoBERTa and ModernBERT, and minilm.json where the folder of all-MiniLM-L6-v2 is given; the repository's
are in crates/yirage-testkit/fixtures/encoders. Weights are not stored: they come from the counter-based generator as in
make_tiny_archs.py. Everything is computed in float32 without padding, one text at a time.
"""
import hashlib
import json
import os
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from counter_rng import weights

torch.set_num_threads(1)
SEED = 1
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789äßø今天日本語かな한мирع"
SIGNS = ".,;:!?'\"()[]{}<>/\\|+-*=_~^`@#$%&«»—…。、「」€½🙂"
PIECES = ["the", "cat", "dog", "on", "sat", "mat", "is", "a", "big", "small", "house", "embed", "##ding", "##ed", "##ing",
          "##s", "##er", "run", "walk", "un", "##able", "question", "answer", "cafe", "naive", "don", "strass", "##e"]
TEXTS = ["The cat sat on the mat.", "A big dog, running!", "", " \t\n ", "Embedding embeddings embedded",
         "Caf\u00e9 NAI\u0308VE stra\u00dfe \u00c4\u00d8\u00f8", "\u4eca\u5929\u65e5\u672c\u8a9ethe\u304b\u306acat\ud55c",
         "don't (stop) it's [x] <y>", "a\u0000b\ufffdc\u200dd\u0007e\u00a0f\u3000g\u2028h", "x" * 100, "x" * 101 + " cat",
         "cat" * 34, "[CLS] the [SEP] cat[MASK]dog [UNK] [PAD]", "[cls] [Sep]", "\U0001f642the\U0001f44d\U0001f3fdcat",
         "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f \u20ac5 \u00bd $3 a+b=c^2 ~`|", "\u0130I\u0131 \u1e9e \ufb01 \u01c5",
         "\u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u043c\u0438\u0440 \u1112\u1161\u11ab",
         "\u3002\u300cthe\u300d\u3001cat\u2026dog\u2014mat \u00abis\u00bb", "unrunable catz \U00020000\U0002a700 \U000e0041",
         "question answer " * 16]
PAIRS = [("the cat", "a small dog sat"), ("question?", ""), ("", "answer"), ("the [SEP] cat", "dog")]
LONG = "the cat sat on the mat, a big dog is walking. " * 22


def tokenizer_file(one_kind=False):
    """A file whose pairs have two types, or one and two separators, as RoBERTa's."""
    every = SPECIAL + [*LETTERS] + ["##" + c for c in LETTERS] + [*SIGNS] + PIECES
    vocab = list(dict.fromkeys(every))
    frame = lambda token, kind: {"SpecialToken": {"id": token, "type_id": kind}}
    text = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    single = [frame("[CLS]", 0), text("A", 0), frame("[SEP]", 0)]
    added = [dict(id=i, special=True, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False)
             for i, t in enumerate(SPECIAL)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single,
                           "pair": [*single, *([frame("[SEP]", 0), text("B", 0), frame("[SEP]", 0)] if one_kind else
                                       [text("B", 1), frame("[SEP]", 1)])],
                           "special_tokens": {t: {"id": t, "ids": [vocab.index(t)], "tokens": [t]}
                                              for t in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(vocab)}},
    }


def recipe(name, initial):
    """Base and exponent of a tensor: norms that multiply by 1 stay near 1."""
    if initial.ndim >= 2:
        return 0.0, 10
    return (1.0 if "norm" in name.lower() and name.endswith(".weight") else 0.0), 11


def build(cls, config, folder):
    """The model whose checkpoint in `folder` has the generator's weights, their recipes and a hash of their bytes."""
    cls(config).save_pretrained(folder)
    file, tensors, made, digest = os.path.join(folder, "model.safetensors"), [], {}, hashlib.sha256()
    for name, initial in sorted(load_file(file).items()):
        base, exponent = recipe(name, initial)
        values = weights(SEED, name, list(initial.shape), base, exponent)
        digest.update(values.tobytes())
        made[name] = torch.from_numpy(values)
        tensors.append([name, list(initial.shape), base, exponent])
    save_file(made, file, metadata=dict(format="pt"))
    model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return model, tensors, digest.hexdigest()


def floats(row):
    return [float(str(x)) for x in row]


def hidden(model, tokenizer, text):
    """First, middle and last row of the last layer, and the mean of all rows, of length 1."""
    ids = tokenizer.encode(text).ids
    with torch.no_grad():
        rows = model(torch.tensor([ids])).last_hidden_state[0].numpy()
    mean = rows.astype(np.float64).mean(0)
    places = sorted({0, len(ids) // 2, len(ids) - 1})
    return dict(text=text, rows=[[p, floats(rows[p])] for p in places],
                mean=[round(float(x), 9) for x in mean / np.linalg.norm(mean)])


def write(out, name, doc):
    path = os.path.join(out, f"{name}.json")
    with open(path, "w") as file:
        lines = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in doc.items()]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, os.path.getsize(path), "bytes", flush=True)


def describe(config, tensors, digest, files, tokenizer, **more):
    encoded = [dict(text=t, ids=tokenizer.encode(t).ids) for t in TEXTS]
    pairs = [(tokenizer.encode(a, b), a, b) for a, b in PAIRS]
    pairs = [dict(first=a, second=b, ids=e.ids, types=e.type_ids) for e, a, b in pairs]
    return dict(format="tiny-encoder-v1", transformers=tf.__version__, torch=torch.__version__, seed=SEED, config=config,
                files=files, tensors=tensors, sha256=digest, texts=encoded, pairs=pairs, **more)


def write_scores(out, name, cls, config, file):
    tokenizer = Tokenizer.from_str(json.dumps(file))
    with tempfile.TemporaryDirectory() as folder:
        model, tensors, digest = build(cls, config, folder)
        stated = json.load(open(os.path.join(folder, "config.json")))
    scores = []
    for first, second in PAIRS:
        e = tokenizer.encode(first, second)
        types = {} if "ModernBert" in cls.__name__ else dict(token_type_ids=torch.tensor([e.type_ids]))
        with torch.no_grad():
            found = model(torch.tensor([e.ids]), **types).logits[0].numpy()
        scores.append(dict(first=first, second=second, scores=floats(found)))
    write(out, name, describe(stated, tensors, digest, {"tokenizer.json": file}, tokenizer, cases=scores))


def main(out, minilm):
    os.makedirs(out, exist_ok=True)
    file = tokenizer_file()
    tokenizer = Tokenizer.from_str(json.dumps(file))
    config = dict(vocab_size=len(file["model"]["vocab"]), hidden_size=48, intermediate_size=80, num_hidden_layers=2,
                  num_attention_heads=4, max_position_embeddings=384, type_vocab_size=2)
    module = lambda i, path, kind: dict(idx=i, name=str(i), path=path, type=f"sentence_transformers.models.{kind}")
    files = {
        "tokenizer.json": file,
        "modules.json": [module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling"),
                         module(2, "2_Normalize", "Normalize")],
        "1_Pooling/config.json": dict(word_embedding_dimension=48, pooling_mode_cls_token=False,
                                      pooling_mode_mean_tokens=True, pooling_mode_max_tokens=False),
        "sentence_bert_config.json": dict(max_seq_length=320, do_lower_case=False),
    }
    with tempfile.TemporaryDirectory() as folder:
        model, tensors, digest = build(tf.BertModel, tf.BertConfig(**config), folder)
        stated = json.load(open(os.path.join(folder, "config.json")))
    cases = [hidden(model, tokenizer, t) for t in TEXTS + [LONG]]
    write(out, "embed", describe(stated, tensors, digest, files, tokenizer, cases=cases))

    one = tf.BertConfig(**config, num_labels=1, position_embedding_type="absolute")
    write_scores(out, "score", tf.BertForSequenceClassification, one, file)

    # Positions begin behind the padding token's number, and one that stands in a text has none.
    texts = [t for t in TEXTS if "[PAD]" not in t] + [LONG]
    one_kind, base = tokenizer_file(True), dict(config, type_vocab_size=1, max_position_embeddings=385, pad_token_id=0)
    with tempfile.TemporaryDirectory() as folder:
        model, tensors, digest = build(tf.XLMRobertaModel, tf.XLMRobertaConfig(**base), folder)
        stated = json.load(open(os.path.join(folder, "config.json")))
    cases = [hidden(model, tokenizer, t) for t in texts]
    files = dict(files, **{"tokenizer.json": one_kind})
    write(out, "roberta-embed", describe(stated, tensors, digest, files, Tokenizer.from_str(json.dumps(one_kind)), cases=cases))
    one = tf.RobertaConfig(**base, num_labels=1)
    write_scores(out, "roberta-score", tf.RobertaForSequenceClassification, one, one_kind)

    base = dict({k: v for k, v in config.items() if k != "type_vocab_size"}, num_hidden_layers=4, local_attention=8, pad_token_id=0,
                bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)
    with tempfile.TemporaryDirectory() as folder:
        model, tensors, digest = build(tf.ModernBertModel, tf.ModernBertConfig(**base), folder)
        stated = json.load(open(os.path.join(folder, "config.json")))
    cases = [hidden(model, tokenizer, t) for t in TEXTS + [LONG]]
    files = dict(files, **{"tokenizer.json": file})
    write(out, "modernbert-embed", describe(stated, tensors, digest, files, tokenizer, cases=cases))
    one = tf.ModernBertConfig(**base, num_labels=1)
    write_scores(out, "modernbert-score", tf.ModernBertForSequenceClassification, one, file)

    if minilm:
        model = SentenceTransformer(minilm, device="cpu")
        texts = [t for t in TEXTS if t] + ["How do I reverse a list in Rust?", LONG]
        rows = [model.encode([t], convert_to_numpy=True)[0] for t in texts]
        ids = Tokenizer.from_file(os.path.join(minilm, "tokenizer.json"))
        ids.no_padding()
        ids.no_truncation()
        encoded = [dict(text=t, ids=ids.encode(t).ids, embedding=floats(r)) for t, r in zip(texts, rows)]
        import sentence_transformers
        write(out, "minilm", dict(format="sentence-embeddings-v1", sentence_transformers=sentence_transformers.__version__,
                                  torch=torch.__version__, longest=model.max_seq_length, cases=encoded))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
