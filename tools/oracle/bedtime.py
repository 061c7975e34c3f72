"""`bedtime`, the small model of the tests: its tokens, its files and its golden outputs.

usage: bedtime.py prepare CORPUS PREPARED           (needs numpy, tokenizers)
       bedtime.py export  PREPARED TRAINED OUT      (needs numpy, tokenizers, gguf, torch, transformers)

CORPUS is a folder of .txt or .txt.xz files, books parted by empty lines. PREPARED is what tools/train/story_model.py
reads, plus vocabulary.json: a list of [piece, score], in the manner of SentencePiece, with a token for every byte. The
training between the two:

    story_model.py train PREPARED TRAINED --device cpu --seconds 990 --width 64 --layers 5 --heads 8 --kv-heads 4 \
        --hidden 160 --context 128 --batch 16 --rate 6e-3 --dropout 0 --decay 0.01 --looks 10

It goes by the clock, so it gives another model every time; the files in OUT belong together and are replaced together
(the repository's are in crates/yirage-testkit/fixtures/bedtime). OUT gets bedtime-q8_0.gguf by the `gguf` package;
contents.json, what is where in it; and golden.json: what transformers computes in float32 from the stored weights, and
what the `tokenizers` package makes of texts.
"""
import json
import pathlib
import sys

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "train"))
from story import exporting, shards  # noqa: E402
from story.corpus import books  # noqa: E402

VOCABULARY, BOS, EOS = 512, 1, 2
BYTES = [f"<0x{i:02X}>" for i in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]
# Characters of text that the pieces are made of, and of one tale; the rest of the corpus is not read.
ENOUGH, TALE = 12_000_000, 1500


def pieces(texts):
    """The vocabulary, most frequent merges first; a word's mark is U+2581, as SentencePiece has it."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - len(SPECIAL) - len(BYTES), limit_alphabet=76, show_progress=False)
    trained.train_from_iterator(texts, trainer)
    order = sorted(trained.get_vocab().items(), key=lambda entry: entry[1])
    # A piece that comes later has a lower score; single characters are never the result of a merge.
    found = [[piece, -float(at)] for at, (piece, _) in enumerate(order)]
    return [[token, 0.0] for token in SPECIAL + BYTES] + found


def tokenizer(vocabulary):
    """The same as a tokenizer.json: whatever two pieces join to a third may be joined, the highest score first."""
    ids = {piece: at for at, (piece, _) in enumerate(vocabulary)}
    merges = []
    for piece, score in vocabulary[len(SPECIAL) + len(BYTES):]:
        merges += [(-score, piece[:at], piece[at:]) for at in range(1, len(piece)) if piece[:at] in ids and piece[at:] in ids]
    merges = [(a, b) for _, a, b in sorted(merges, key=lambda merge: merge[0])]
    made = Tokenizer(models.BPE(vocab=ids, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)])
    made.add_special_tokens(SPECIAL)
    return made


def tales(text):
    """Consecutive paragraphs of a book, at least TALE characters together."""
    tale = []
    for paragraph in text.split("\n"):
        tale.append(paragraph)
        if sum(map(len, tale)) >= TALE:
            yield "\n".join(tale)
            tale = []


def prepare(corpus, prepared):
    texts, digest = books(corpus)
    chosen, size = [], 0
    for tale in (tale for text in texts for tale in tales(text)):
        if tale.isascii() and size < ENOUGH:
            chosen.append(tale)
            size += len(tale)
    vocabulary = pieces(chosen)
    made = tokenizer(vocabulary)
    prepared.mkdir(parents=True, exist_ok=True)
    (prepared / "vocabulary.json").write_text(json.dumps(vocabulary))
    made.save(str(prepared / "tokenizer.json"))
    rows = [np.array([BOS, *e.ids, EOS], dtype="<u2") for e in made.encode_batch(chosen, add_special_tokens=False)]
    held = len(rows) // 50
    parts = {"validation": rows[::100][:held], "test": rows[50::100][:held],
             "train": [row for at, row in enumerate(rows) if at % 50]}
    about = dict(corpus_sha256=digest, vocabulary=VOCABULARY, end=EOS, prompts=[], parts={})
    for name, part in parts.items():
        np.concatenate(part).tofile(prepared / f"{name}.u16")
        about["parts"][name] = dict(books=len(part), tokens=sum(map(len, part)), bytes=sum(map(len, chosen)))
    starts = np.cumsum([0] + [len(row) for row in parts["train"]][:-1])
    starts.astype("<u4").tofile(prepared / "paragraphs.u32")
    (prepared / "prepared.json").write_text(json.dumps(about, indent=1) + "\n")
    print({name: part["tokens"] for name, part in about["parts"].items()}, [p for p, _ in vocabulary[259:]])


CONTEXT = 512
LONG = "The hen had a red hat. She gave the hat to the fox. "
PROMPTS = [("short", "In the deep forest"), ("middle", "The little girl went to the king and said"),
           ("quoted", 'The boy looked at his mother and said, "'), ("foreign", "Caf\u00e9 \u21165 \u00fcnder \u20ac7!"),
           ("long", LONG * 15)]
PASSAGE = ("The old king sat by the fire. He had three sons, and the youngest was a very good boy. One day the boy said to his "
           'father, "I will go and see what is in the wood." The king was not happy, but he gave him a horse and some bread.')
TEXTS = ["Hello world", "Once upon a time, there was a little girl named Lily.", "", " ", "  two  spaces ", "a\nb\n\nc",
         "\ttab", "na\u00efve caf\u00e9", "\u65e5\u672c\u8a9e", "\U0001f600 smile", "3.14159 + 2 = 5.14159", "<s>not special</s>",
         "\u2581marks\u2581", "don't won't I'll", "ALL CAPS SHOUTING!", "x" * 40, PASSAGE]
# Of logits: at a smaller distance rounding could choose the token.
MARGIN = 0.02


def configuration(shape):
    return dict(exporting.configuration(dict(shape, context=CONTEXT), EOS), bos_token_id=BOS)


def write_gguf(path, tensors, shape, vocabulary):
    """The file, and what is where in it."""
    import gguf
    w, config = gguf.GGUFWriter(path, "llama"), configuration(shape)
    w.add_name("bedtime")
    w.add_license("Apache-2.0 OR MIT")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_rope_dimension_count(config["head_dim"])
    w.add_rope_freq_base(config["rope_theta"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_vocab_size(VOCABULARY)
    w.add_tokenizer_model("llama")
    w.add_token_list([piece for piece, _ in vocabulary])
    w.add_token_scores([score for _, score in vocabulary])
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    w.add_token_types(types + [gguf.TokenType.NORMAL] * (VOCABULARY - len(types)))
    w.add_bos_token_id(BOS)
    w.add_eos_token_id(EOS)
    w.add_unk_token_id(0)
    w.add_add_bos_token(True)
    w.add_add_space_prefix(True)
    kind = gguf.GGMLQuantizationType.Q8_0
    names = list(tensors)
    for (name, value), _ in zip(exporting.gguf_tensors(tensors, shape), names):
        matrix = value.ndim == 2
        value = gguf.quants.quantize(np.ascontiguousarray(value), kind) if matrix else np.ascontiguousarray(value)
        w.add_tensor(name, value, raw_dtype=kind if matrix else None)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return [row(tensor, hf, shape) for tensor, hf in zip(gguf.GGUFReader(path).tensors, names)]


def row(tensor, hf, shape):
    heads = shape["heads"] if "attn_q" in tensor.name else shape["kv_heads"] if "attn_k" in tensor.name else 0
    return dict(gguf=tensor.name, hf=hf, shape=[int(n) for n in tensor.shape[::-1]], offset=int(tensor.data_offset), heads=heads)


def halves(w, heads):
    """The inverse of `exporting.neighbours`."""
    return w.reshape(heads, w.shape[0] // heads // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape) if heads else w


def stored(path, rows):
    """The values that the file has, under the names of the checkpoint."""
    import gguf
    found = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    return {r["hf"]: halves(found[r["gguf"]].reshape(r["shape"]).astype(np.float32), r["heads"]) for r in rows}


def reference(config, tensors):
    import torch
    import transformers
    torch.set_num_threads(1)
    keywords = {k: v for k, v in config.items() if k not in ("architectures", "model_type", "torch_dtype")}
    model = transformers.LlamaForCausalLM._from_config(transformers.LlamaConfig(**keywords), attn_implementation="eager").eval()
    missing, unexpected = model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in tensors.items()}, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)

    def logits(ids):
        with torch.no_grad():
            return model(torch.tensor([ids])).logits[0].double()
    return logits, dict(transformers=transformers.__version__, torch=torch.__version__)


def case(logits, made, name, prompt):
    ids = [BOS, *made.encode(prompt, add_special_tokens=False).ids]
    tokens, steps = list(ids), []
    for step in range(16):
        last = logits(tokens)[-1]
        top, places = last.topk(10)
        margin = float(top[0] - top[1])
        if margin < MARGIN:
            raise SystemExit(f"{name}: step {step} has a margin of {margin}; choose another prompt")
        steps.append(dict(step=step, pos=len(tokens) - 1, chosen=int(places[0]), top10_ids=places.tolist(),
                          top10_logits=[round(x, 5) for x in top.tolist()], logsumexp=round(float(last.logsumexp(0)), 5),
                          margin=round(margin, 5)))
        tokens.append(int(places[0]))
    greedy = tokens[len(ids):]
    # The decoder takes off the space in front of a text, which a continuation keeps.
    text = made.decode(ids + greedy, skip_special_tokens=True)[len(made.decode(ids, skip_special_tokens=True)):]
    return dict(id=name, kind="completion", prompt=prompt, prompt_ids=ids, greedy_ids=greedy, greedy_text=text, steps=steps)


def passage(logits, made):
    ids = [BOS, *made.encode(PASSAGE, add_special_tokens=False).ids]
    rows = logits(ids).log_softmax(-1)
    found = [float(rows[at - 1, ids[at]]) for at in range(1, len(ids))]
    return dict(text=PASSAGE, ids=ids, logprobs_of_ids_1_to_end=[round(x, 6) for x in found],
                mean_nll=round(-float(np.mean(found)), 6))


def export(prepared, trained, out):
    about, tensors = json.loads((trained / "trained.json").read_text()), shards.read(trained)
    vocabulary, made = json.loads((prepared / "vocabulary.json").read_text()), Tokenizer.from_file(str(prepared / "tokenizer.json"))
    # Strings in a text are text here: the files of both formats are compared without parsing control tokens.
    made.encode_special_tokens = True
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bedtime-q8_0.gguf"
    rows, config = write_gguf(path, tensors, about["shape"], vocabulary), configuration(about["shape"])
    lines = [f'"config": {json.dumps(config)}', '"vocabulary": ' + json.dumps(vocabulary, ensure_ascii=False),
             '"tensors": [\n' + ",\n".join(map(json.dumps, rows)) + "]"]
    (out / "contents.json").write_text("{" + ",\n".join(lines) + "}\n")
    logits, versions = reference(config, stored(path, rows))
    texts = [dict(text=text, ids=made.encode(text, add_special_tokens=False).ids) for text in TEXTS]
    golden = dict(format="golden-v1", model=path.name, reference=versions, training=dict(steps=about["steps"], test=about["test"]),
                  cases=[case(logits, made, *prompt) for prompt in PROMPTS], nll=passage(logits, made), texts=texts)
    (out / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")
    for one in golden["cases"]:
        print(repr(one["prompt"][-40:]), "->", repr(one["greedy_text"]), min(step["margin"] for step in one["steps"]))
    print(path.stat().st_size, "bytes, mean nll", golden["nll"]["mean_nll"])


def main(step, *paths):
    steps = dict(prepare=prepare, export=export)
    steps[step](*map(pathlib.Path, paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
