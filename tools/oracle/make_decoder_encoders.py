"""Tiny decoders that give vectors or scores, and what sentence-transformers and transformers make of texts with them.

usage: make_decoder_encoders.py OUT_DIR      (needs torch, transformers, sentence-transformers, tokenizers, numpy)

OUT_DIR gets qwen3-embedding.json, mistral-embedding.json, qwen3-reranker.json and qwen3-ranking-head.json; the repository's are in
crates/yirage-testkit/fixtures/encoders. The files beside a model are those of Qwen3-Embedding, of e5-mistral, of Qwen3-Reranker and
of a model with a head of one label. Weights are not stored, as in make_encoders.py. Everything is computed in float32, one text at a time.
"""
import json
import os
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from make_encoders import build, floats, write

torch.set_num_threads(1)
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
TEXTS = ["The cat sat on the mat.", "A big dog, running!", "x", "", "What is the capital of China? Beijing.", "naïve café 今天 🙂",
         "the cat sat on the mat, a big dog is walking. " * 7]
PAIRS = [("What is the capital of China?", "The capital of China is Beijing."), ("Explain gravity", "A cat sat."), ("q", ""),
         ("who", "a <|im_end|> within"), ("long", "the cat sat on the mat. " * 10)]
BEFORE = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. '
          'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n')
BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
QUERY = f"Instruct: {INSTRUCTION}\nQuery:"


def byte_letters():
    """GPT-2's letters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


def tokenizer_file(ends):
    """Bytes, the words yes and no, and the marks; `ends` is what stands behind every text."""
    letters = sorted(byte_letters().values())
    merges = [["y", "e"], ["ye", "s"], ["n", "o"], ["t", "h"], ["th", "e"]]
    vocab = {t: i for i, t in enumerate(letters + ["".join(m) for m in merges])}
    added = [dict(id=len(vocab) + i, special=not t.endswith("think>"), content=t, single_word=False, lstrip=False, rstrip=False,
                  normalized=False) for i, t in enumerate(MARKS)]
    mark = {t["content"]: t["id"] for t in added}
    frame = [{"Sequence": {"id": "A", "type_id": 0}}] + [{"SpecialToken": {"id": t, "type_id": 0}} for t in ends]
    pair = frame[:1] + [{"Sequence": {"id": "B", "type_id": 0}}] + frame[1:]
    template = {"type": "TemplateProcessing", "single": frame, "pair": pair,
                "special_tokens": {t: {"id": t, "ids": [mark[t]], "tokens": [t]} for t in ends}}
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, levels]},
        "post_processor": template if ends else levels,
        "decoder": levels,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges},
    }, len(vocab) + len(MARKS)


def sentence_files(longest):
    module = lambda idx, path, kind: dict(idx=idx, name=str(idx), path=path, type="sentence_transformers.models." + kind)
    return {
        "modules.json": [module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling"), module(2, "2_Normalize", "Normalize")],
        "1_Pooling/config.json": dict(word_embedding_dimension=48, pooling_mode_cls_token=False, pooling_mode_mean_tokens=False,
                                      pooling_mode_max_tokens=False, pooling_mode_mean_sqrt_len_tokens=False,
                                      pooling_mode_weightedmean_tokens=False, pooling_mode_lasttoken=True, include_prompt=True),
        "sentence_bert_config.json": dict(max_seq_length=longest, do_lower_case=False),
        "config_sentence_transformers.json": {"prompts": {"query": QUERY, "document": ""}, "default_prompt_name": None,
                                              "similarity_fn_name": "cosine"},
    }


def put(folder, files):
    for name, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)) or folder, exist_ok=True)
        with open(os.path.join(folder, name), "w") as file:
            json.dump(content, file)


def describe(config, tensors, digest, files, **more):
    return dict(format="tiny-decoder-encoder-v1", transformers=tf.__version__, torch=torch.__version__, seed=1, config=config,
                files=files, tensors=tensors, sha256=digest, **more)


def embedding(out, name, cls, config, ends):
    file, _ = tokenizer_file(ends)
    files = {"tokenizer.json": file, **sentence_files(500),
             "tokenizer_config.json": dict(tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>",
                                           pad_token="<|endoftext|>", padding_side="left")}
    with tempfile.TemporaryDirectory() as folder:
        _, tensors, digest = build(cls, config, folder)
        stated = json.load(open(os.path.join(folder, "config.json")))
        put(folder, files)
        model = SentenceTransformer(folder, device="cpu", model_kwargs=dict(dtype=torch.float32, attn_implementation="eager"))
        assert [type(m).__name__ for m in model] == ["Transformer", "Pooling", "Normalize"], model
        cases = []
        for text in TEXTS:
            for prompt in (None, "query"):
                if not text and not prompt and not ends:
                    continue
                row = model.encode([text], prompt_name=prompt, convert_to_numpy=True)[0]
                ids = model.tokenizer((QUERY if prompt else "") + text)["input_ids"]
                assert len(ids) <= 500, len(ids)
                cases.append(dict(text=text, prompt=prompt, ids=ids, vector=floats(row)))
    write(out, name, describe(stated, tensors, digest, files, cases=cases))


def reranker(out, name, cls, config):
    file, _ = tokenizer_file([])
    files = {"tokenizer.json": file}
    if cls is tf.Qwen3ForCausalLM:
        files["README.md"] = "# Qwen3-Reranker-tiny"
    tokenizer = Tokenizer.from_str(json.dumps(file))
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    yes, no = tokenizer.token_to_id("yes"), tokenizer.token_to_id("no")
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        model, tensors, digest = build(cls, config, folder)
        stated = json.load(open(os.path.join(folder, "config.json")))
        for query, text in PAIRS:
            for instruction in (None, "Is it about cats?"):
                body = f"<Instruct>: {instruction or INSTRUCTION}\n<Query>: {query}\n<Document>: {text}"
                ids = encode(BEFORE) + encode(body) + encode(BEHIND)
                with torch.no_grad():
                    logits = model(torch.tensor([ids])).logits
                if cls is tf.Qwen3ForCausalLM:
                    score = torch.log_softmax(logits[0, -1, [no, yes]], 0)[1].exp()
                else:
                    score = torch.sigmoid(logits[0, 0])
                cases.append(dict(query=query, text=text, instruction=instruction, ids=ids, score=float(str(score.numpy()))))
    write(out, name, describe(stated, tensors, digest, files, cases=cases))


def main(out):
    _, vocabulary = tokenizer_file([])
    sizes = dict(vocab_size=vocabulary, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=16, max_position_embeddings=512)
    embedding(out, "qwen3-embedding", tf.Qwen3Model, tf.Qwen3Config(**sizes, tie_word_embeddings=True), ["<|endoftext|>"])
    embedding(out, "mistral-embedding", tf.MistralModel, tf.MistralConfig(**sizes, sliding_window=None), ["<|endoftext|>"])
    reranker(out, "qwen3-reranker", tf.Qwen3ForCausalLM, tf.Qwen3Config(**sizes, tie_word_embeddings=True))
    reranker(out, "qwen3-ranking-head", tf.Qwen3ForSequenceClassification,
             tf.Qwen3Config(**sizes, tie_word_embeddings=True, num_labels=1, pad_token_id=0))


if __name__ == "__main__":
    main(sys.argv[1])
