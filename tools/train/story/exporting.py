"""Trained weights as a Hugging Face folder (float32) and as a GGUF (matrices in Q8_0, norms in float32).

The GGUF is written and quantised by the PyPI package of that format, which is not ours. There the rotary positions turn
neighbouring pairs, so the rows of queries and keys change places.
"""
import hashlib
import json
import shutil

import gguf
import numpy as np
from tokenizers import Tokenizer

from . import shards
from .corpus import END

LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
MODEL = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
LIMIT = 16_000_000


def configuration(shape, end):
    return dict(
        architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=shape["vocabulary"],
        hidden_size=shape["width"], intermediate_size=shape["hidden"], num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"], num_key_value_heads=shape["kv_heads"],
        head_dim=shape["width"] // shape["heads"], max_position_embeddings=shape["context"],
        rms_norm_eps=shape["eps"], rope_theta=shape["theta"], hidden_act="silu", tie_word_embeddings=True,
        attention_bias=False, mlp_bias=False, bos_token_id=end, eos_token_id=end, torch_dtype="float32")


def write_folder(folder, tensors, shape, end, prepared):
    folder.mkdir(parents=True, exist_ok=True)
    shards.write_file(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(configuration(shape, end), indent=1) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(dict(bos_token_id=end, eos_token_id=end)) + "\n")
    shutil.copyfile(prepared / "tokenizer.json", folder / "tokenizer.json")


def neighbours(w, heads):
    """Rows of each head from halves to neighbouring pairs."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def gguf_tensors(tensors, shape):
    for name, value in tensors.items():
        if name in MODEL:
            yield MODEL[name], value
            continue
        _, _, layer, part = name.split(".", 3)
        short = LAYER[part.removesuffix(".weight")]
        if short in ("attn_q", "attn_k"):
            value = neighbours(value, shape["heads"] if short == "attn_q" else shape["kv_heads"])
        yield f"blk.{layer}.{short}.weight", value


def add_vocabulary(w, tokenizer, end):
    file = json.loads(tokenizer.to_str())
    vocabulary = sorted(file["model"]["vocab"].items(), key=lambda entry: entry[1])
    if [i for _, i in vocabulary] != list(range(len(vocabulary))):
        raise SystemExit("the vocabulary's ids have holes: prepare it anew")
    merges = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list([token for token, _ in vocabulary])
    types = [gguf.TokenType.CONTROL if token == END else gguf.TokenType.NORMAL for token, _ in vocabulary]
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_bos_token_id(end)
    w.add_eos_token_id(end)
    # Training examples begin anywhere, so a text needs nothing in front.
    w.add_add_bos_token(False)


def write_gguf(path, tensors, shape, tokenizer, end, name):
    w = gguf.GGUFWriter(path, "llama")
    w.add_name(name)
    w.add_license("Apache-2.0 OR MIT")
    w.add_description("Writes in the style of old children's books, in English; it is no assistant. Trained for yirage on "
                      "277 books in the public domain.")
    w.add_float32("general.sampling.temp", 0.7)
    w.add_float32("general.sampling.penalty_repeat", 1.15)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    w.add_context_length(shape["context"])
    w.add_embedding_length(shape["width"])
    w.add_block_count(shape["layers"])
    w.add_feed_forward_length(shape["hidden"])
    w.add_head_count(shape["heads"])
    w.add_head_count_kv(shape["kv_heads"])
    w.add_rope_dimension_count(shape["width"] // shape["heads"])
    w.add_rope_freq_base(shape["theta"])
    w.add_layer_norm_rms_eps(shape["eps"])
    w.add_vocab_size(shape["vocabulary"])
    add_vocabulary(w, tokenizer, end)
    for tensor, value in gguf_tensors(tensors, shape):
        if value.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            w.add_tensor(tensor, gguf.quants.quantize(np.ascontiguousarray(value), kind), raw_dtype=kind)
        else:
            w.add_tensor(tensor, np.ascontiguousarray(value))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def report(trained, tokenizer):
    """Losses and the samples, as a page."""
    samples = [one for one in trained["samples"] if one["made"]]
    parts = trained["prepared"]["parts"]
    each = parts["test"]["bytes"] / parts["test"]["tokens"]
    bits = trained["test"] / each / np.log(2)
    lines = [
        f"{trained['weights']:,} weights, {trained['steps']:,} steps, {trained['tokens_read'] / 1e6:.0f} M tokens read "
        f"of {parts['train']['tokens'] / 1e6:.1f} M.", "",
        f"Loss on books never read: {trained['test']:.4f} nats a token ({bits:.3f} bits a byte) on {parts['test']['books']} "
        f"test books; {trained['validation']:.4f} on the books that chose the weights.", "",
        f"{len(samples)} samples, unselected, of {len(trained['samples'])} prompts fixed beforehand (the prompt in bold):", ""]
    for one in samples:
        text = tokenizer.decode(one["made"], skip_special_tokens=True)
        lines += ["> **" + one["text"] + "**" + text.replace("\n", "\n>\n> "), "", "---", ""]
    return "\n".join(lines[:-2]) + "\n"


def export(options):
    """The `export` step."""
    trained = json.loads((options.trained / "trained.json").read_text())
    tensors, shape = shards.read(options.trained), trained["shape"]
    tokenizer = Tokenizer.from_file(str(options.prepared / "tokenizer.json"))
    end = trained["prepared"]["end"]
    write_folder(options.out / "hf", tensors, shape, end, options.prepared)
    path = options.out / f"{options.name}-q8_0.gguf"
    write_gguf(path, tensors, shape, tokenizer, end, options.name)
    size, digest = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
    (options.out / f"{path.name}.sha256").write_text(f"{digest}  {path.name}\n")
    (options.out / "report.md").write_text(report(trained, tokenizer))
    print(f"{path}: {size} bytes, sha256 {digest}")
    if size >= LIMIT:
        raise SystemExit(f"{path} has {size} bytes, the limit is {LIMIT}: train a smaller shape or vocabulary")
