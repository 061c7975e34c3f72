//! One weight, several names: architecture files use those of Hugging Face checkpoints; this module finds what a file
//! calls it, and what a file's tensor is called in another container. It knows no shapes and no meaning beyond the name.

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
    ("block_sparse_moe.router.layer", "ffn_gate_inp"),
    ("shared_mlp.gate_proj", "ffn_gate_shexp"),
    ("shared_mlp.up_proj", "ffn_up_shexp"),
    ("shared_mlp.output_linear", "ffn_down_shexp"),
    ("mlp.shared_expert.gate_proj", "ffn_gate_shexp"),
    ("mlp.shared_expert.up_proj", "ffn_up_shexp"),
    ("mlp.shared_expert.down_proj", "ffn_down_shexp"),
    ("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
    ("self_attn.q_a_proj", "attn_q_a"),
    ("self_attn.q_a_layernorm", "attn_q_a_norm"),
    ("self_attn.q_b_proj", "attn_q_b"),
    ("self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"),
    ("self_attn.kv_a_layernorm", "attn_kv_a_norm"),
    ("self_attn.kv_b_proj", "attn_kv_b"),
    ("self_attn.query_layernorm", "attn_q_norm"),
    ("self_attn.key_layernorm", "attn_k_norm"),
    ("mlp.c_fc", "ffn_up"),
    ("mlp.c_proj", "ffn_down"),
    ("mlp.gate.e_score_correction_bias", "exp_probs_b.bias"),
    ("mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"),
    ("block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"),
    ("mlp.shared_experts.gate_proj", "ffn_gate_shexp"),
    ("mlp.shared_experts.up_proj", "ffn_up_shexp"),
    ("mlp.shared_experts.down_proj", "ffn_down_shexp"),
    ("enorm", "nextn.enorm"),
    ("hnorm", "nextn.hnorm"),
    ("eh_proj", "nextn.eh_proj"),
    ("shared_head.norm", "nextn.shared_head_norm"),
    ("shared_head.head", "nextn.shared_head_head"),
    ("embed_tokens", "nextn.embed_tokens"),
    ("norm", "attn_norm"),
    ("mixer.q_proj", "attn_q"),
    ("mixer.k_proj", "attn_k"),
    ("mixer.v_proj", "attn_v"),
    ("mixer.o_proj", "attn_output"),
    ("mixer.up_proj", "ffn_up"),
    ("mixer.down_proj", "ffn_down"),
    ("mixer.gate", "ffn_gate_inp"),
    ("mixer.gate.e_score_correction_bias", "exp_probs_b.bias"),
    ("mixer.shared_experts.up_proj", "ffn_up_shexp"),
    ("mixer.shared_experts.down_proj", "ffn_down_shexp"),
    ("mixer.fc1_latent_proj", "ffn_latent_down"),
    ("mixer.fc2_latent_proj", "ffn_latent_up"),
    ("operator_norm", "attn_norm"),
    ("ffn_norm", "ffn_norm"),
    ("feed_forward.w1", "ffn_gate"),
    ("feed_forward.w3", "ffn_up"),
    ("feed_forward.w2", "ffn_down"),
    ("feed_forward.gate", "ffn_gate_inp"),
    ("feed_forward.router", "ffn_gate_inp"),
    ("feed_forward.gate_proj", "ffn_gate"),
    ("feed_forward.up_proj", "ffn_up"),
    ("feed_forward.down_proj", "ffn_down"),
    ("feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"),
    ("feed_forward.shared_expert.up_proj", "ffn_up_shexp"),
    ("feed_forward.shared_expert.down_proj", "ffn_down_shexp"),
    ("feed_forward.expert_bias", "exp_probs_b.bias"),
    ("self_attn.q_layernorm", "attn_q_norm"),
    ("self_attn.k_layernorm", "attn_k_norm"),
    ("self_attn.out_proj", "attn_output"),
    ("conv.in_proj", "shortconv.in_proj"),
    ("conv.conv", "shortconv.conv"),
    ("conv.out_proj", "shortconv.out_proj"),
];

/// What a recurrent part is called in families of safetensors.
const RECURRENT: &[&str] = &["mixer.", "mamba.", "linear_attn."];

/// Part of such a part's tensor name, and its GGUF name.
const RECURRENT_PARTS: &[(&str, &str)] = &[
    ("in_proj", "ssm_in"),
    ("in_proj_qkvz", "ssm_in"),
    ("in_proj_qkv", "attn_qkv"),
    ("in_proj_z", "attn_gate"),
    ("in_proj_ba", "ssm_ba"),
    ("in_proj_a", "ssm_alpha"),
    ("in_proj_b", "ssm_beta"),
    ("conv1d", "ssm_conv1d"),
    ("A_log", "ssm_a"),
    ("D", "ssm_d"),
    ("dt_bias", "ssm_dt.bias"),
    ("norm", "ssm_norm"),
    ("out_proj", "ssm_out"),
];

/// Names outside the layers.
const MODEL: &[(&str, &str)] = &[
    ("model.embed_tokens.weight", "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    ("model.norm.bias", "output_norm.bias"),
    ("lm_head.weight", "output.weight"),
    ("model.embedding_norm.weight", "token_embd_norm.weight"),
    ("backbone.embeddings.weight", "token_embd.weight"),
    ("backbone.norm_f.weight", "output_norm.weight"),
];

/// The name in a GGUF file. `post_norms`: whether the norm after attention is applied to its output; elsewhere its
/// name means the norm before the feed-forward part. Names without a counterpart stay as they are.
pub fn gguf(hf: &str, post_norms: bool) -> String {
    if let Some((_, name)) = MODEL.iter().find(|n| n.0 == hf) {
        return (*name).to_owned();
    }
    let layers = ["model.layers.", "backbone.layers."].iter().find_map(|root| hf.strip_prefix(root));
    let Some((layer, part)) = layers.and_then(|rest| rest.split_once('.')) else {
        return hf.to_owned();
    };
    let kind = [".weight", ".bias"].into_iter().find(|k| part.ends_with(k)).unwrap_or("");
    let stem = &part[..part.len() - kind.len()];
    let name = match stem {
        "post_attention_layernorm" if post_norms => Some("post_attention_norm"),
        "post_attention_layernorm" => Some("ffn_norm"),
        _ => {
            let recurrent = RECURRENT.iter().find_map(|root| stem.strip_prefix(root));
            let of = |table: &[(&str, &'static str)], stem: &str| table.iter().find(|n| n.0 == stem).map(|n| n.1);
            of(LAYER, stem).or_else(|| recurrent.and_then(|rest| of(RECURRENT_PARTS, rest)))
        }
    };
    name.map_or_else(|| hf.to_owned(), |name| format!("blk.{layer}.{name}{kind}"))
}

/// Roots that safetensors files of multi-modal models have before the names of their language model, and what is there
/// without one.
const ROOTS: &[(&str, &str)] =
    &[("language_model.", ""), ("model.language_model.", "model."), ("model.text_model.", "model.")];

/// With what the names of a bare body begin, which lack the root `model.`.
const BARE: &[&str] = &["layers.", "embed_tokens.", "norm."];

/// The name that a safetensors file's tensor has in a whole model of text alone: what [`gguf`] takes.
pub fn hugging_face(stored: &str) -> String {
    let inside = ROOTS.iter().find_map(|(root, outside)| Some(format!("{outside}{}", stored.strip_prefix(root)?)));
    let name = inside.unwrap_or_else(|| stored.to_owned());
    if BARE.iter().any(|start| name.starts_with(start)) { format!("model.{name}") } else { name }
}

/// One of the matrices of one expert, by its name in a safetensors file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpertMatrixName {
    /// The layer.
    pub layer: u32,
    /// The expert.
    pub expert: u32,
    /// `gate`, `up` or `down`.
    pub part: &'static str,
}

/// What families call the folders of their experts.
const EXPERTS: &[&str] = &["mlp.experts.", "block_sparse_moe.experts."];

/// What they call an expert's matrices, and what those are.
const EXPERT_PARTS: &[(&str, &str)] =
    &[("gate_proj", "gate"), ("up_proj", "up"), ("down_proj", "down"), ("w1", "gate"), ("w3", "up"), ("w2", "down")];

/// Reads the name of an expert's matrix; `None` for other tensors.
pub fn expert_matrix(hf: &str) -> Option<ExpertMatrixName> {
    let (layer, rest) = hf.strip_prefix("model.layers.")?.split_once('.')?;
    let rest = EXPERTS.iter().find_map(|folder| rest.strip_prefix(folder))?;
    let (expert, rest) = rest.split_once('.')?;
    let name = rest.strip_suffix(".weight")?;
    let part = EXPERT_PARTS.iter().find(|known| known.0 == name)?.1;
    Some(ExpertMatrixName { layer: layer.parse().ok()?, expert: expert.parse().ok()?, part })
}

/// The name in a GGUF file of what all experts of a layer have in the place of `part`; `kind` is `weight` or `bias`.
pub fn stacked_experts(layer: u32, part: &str, kind: &str) -> String {
    format!("blk.{layer}.ffn_{part}_exps.{kind}")
}

/// The name in a safetensors file: as written, inside a multi-modal model, or without the root that a bare body lacks.
pub(crate) fn safetensors(hf: &str, checkpoint: &Checkpoint) -> String {
    let inside = ROOTS.iter().filter_map(|(root, outside)| Some(format!("{root}{}", hf.strip_prefix(outside)?)));
    let bare = ["model.", "transformer.", "gpt_neox.", "bert.", "roberta."]
        .iter()
        .find_map(|root| hf.strip_prefix(root))
        .map(str::to_owned);
    // What older files call `backbone` is `model` in newer ones.
    let renamed = hf.strip_prefix("backbone.").map(|rest| format!("model.{rest}"));
    let mut candidates = std::iter::once(hf.to_owned()).chain(inside).chain(bare).chain(renamed);
    let found = candidates.find(|name| checkpoint.tensor(name).is_some());
    found.unwrap_or_else(|| hf.to_owned())
}

/// The name of a module's matrix in a safetensors file, whatever root the file or the module's name lacks.
pub(crate) fn stored_module(module: &str, checkpoint: &Checkpoint) -> String {
    let names = [format!("{module}.weight"), format!("model.{module}.weight")];
    let found = names.iter().map(|name| safetensors(name, checkpoint)).find(|n| checkpoint.tensor(n).is_some());
    found.unwrap_or_else(|| names[0].clone())
}
