//! One weight, several names: architecture files use those of Hugging Face checkpoints; this module finds what a file
//! calls it. It knows no shapes and no meaning beyond the name.

use crate::checkpoint::Checkpoint;

/// Part of a layer's tensor name, without `.weight` or `.bias`, and its GGUF name.
const LAYER: &[(&str, &str)] = &[
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.sinks", "attn_sinks.weight"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("post_self_attn_layernorm", "post_attention_norm"),
    ("post_mlp_layernorm", "post_ffw_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate", "ffn_gate_inp"),
    ("mlp.router", "ffn_gate_inp"),
    ("block_sparse_moe.gate", "ffn_gate_inp"),
];

/// Names outside the layers.
const MODEL: &[(&str, &str)] = &[
    ("model.embed_tokens.weight", "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    ("lm_head.weight", "output.weight"),
];

/// The name in a GGUF file. `post_norms`: whether the norm after attention is applied to its output; elsewhere its
/// name means the norm before the feed-forward part. Names without a counterpart stay as they are.
pub(super) fn gguf(hf: &str, post_norms: bool) -> String {
    if let Some((_, name)) = MODEL.iter().find(|n| n.0 == hf) {
        return (*name).to_owned();
    }
    let Some((layer, part)) = hf.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.')) else {
        return hf.to_owned();
    };
    let kind = [".weight", ".bias"].into_iter().find(|k| part.ends_with(k)).unwrap_or("");
    let stem = &part[..part.len() - kind.len()];
    let name = match stem {
        "post_attention_layernorm" if post_norms => Some("post_attention_norm"),
        "post_attention_layernorm" => Some("ffn_norm"),
        _ => LAYER.iter().find(|n| n.0 == stem).map(|n| n.1),
    };
    name.map_or_else(|| hf.to_owned(), |name| format!("blk.{layer}.{name}{kind}"))
}

/// The name in a safetensors file: as written, inside a multi-modal model, or without the root that a bare body lacks.
pub(super) fn safetensors(hf: &str, checkpoint: &Checkpoint) -> String {
    let inside = hf.strip_prefix("model.").map(|rest| format!("model.language_model.{rest}"));
    let bare = ["model.", "transformer.", "gpt_neox.", "bert."]
        .iter()
        .find_map(|root| hf.strip_prefix(root))
        .map(str::to_owned);
    let candidates = [Some(hf.to_owned()), Some(format!("language_model.{hf}")), inside, bare];
    let found = candidates.into_iter().flatten().find(|name| checkpoint.tensor(name).is_some());
    found.unwrap_or_else(|| hf.to_owned())
}
