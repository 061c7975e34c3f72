//! What a tensor is for, by its name in a GGUF file.

/// The kinds that mixes tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TensorRole {
    Output,
    TokenEmbedding,
    AttentionQkv,
    AttentionKvB,
    AttentionValue,
    AttentionKey,
    AttentionQuery,
    AttentionOutput,
    FeedForwardUp,
    FeedForwardGate,
    FeedForwardDown,
    Other,
}

/// What names contain, the first that fits.
const PARTS: &[(&str, TensorRole)] = &[
    ("attn_qkv.weight", TensorRole::AttentionQkv),
    ("attn_kv_b.weight", TensorRole::AttentionKvB),
    ("attn_v.weight", TensorRole::AttentionValue),
    ("attn_k.weight", TensorRole::AttentionKey),
    ("attn_q.weight", TensorRole::AttentionQuery),
    ("attn_output.weight", TensorRole::AttentionOutput),
    ("ffn_up", TensorRole::FeedForwardUp),
    ("ffn_gate", TensorRole::FeedForwardGate),
    ("ffn_down", TensorRole::FeedForwardDown),
];

/// Parts of names of tensors that are small, or that few bits harm most: norms, routers, positions, convolutions, what is
/// added to the input of a model of several kinds of input.
const KEPT_PARTS: &[&str] = &[
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// Names of tensors that stay as they are.
const KEPT: &[&str] = &["position_embd.weight", "token_types.weight"];

impl TensorRole {
    /// The role of a tensor of this name.
    pub(crate) fn of(name: &str) -> TensorRole {
        match name {
            "output.weight" => TensorRole::Output,
            "token_embd.weight" | "per_layer_token_embd.weight" => TensorRole::TokenEmbedding,
            _ => PARTS.iter().find(|(part, _)| name.contains(part)).map_or(TensorRole::Other, |(_, role)| *role),
        }
    }

    /// Whether it is like the values of attention, of which a few bits more help most.
    pub(crate) fn is_like_values(self) -> bool {
        matches!(self, TensorRole::AttentionValue | TensorRole::AttentionQkv | TensorRole::AttentionKvB)
    }
}

/// Whether a tensor of this name and number of dimensions is quantised at all.
pub(crate) fn is_quantized(name: &str, dimensions: usize) -> bool {
    dimensions >= 2
        && name.ends_with("weight")
        && !KEPT.contains(&name)
        && !KEPT_PARTS.iter().any(|part| name.contains(part))
}

/// The layer of `blk.N.`.
pub(crate) fn layer(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}
