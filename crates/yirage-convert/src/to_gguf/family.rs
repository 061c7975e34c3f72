//! How the tensors of a family differ between a folder of safetensors and a GGUF file: the only list of the families that
//! are converted.

use crate::error::ConvertError;
use yirage_model::RawConfig;

/// What a family's GGUF files do otherwise than its safetensors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TensorFamily {
    model_type: &'static str,
    /// `post_attention_layernorm` is called the norm of attention's output, not that before the feed-forward part.
    pub(crate) post_norms: bool,
    /// Rows of queries and keys are in the order of neighbouring pairs, where safetensors have the halves of a head.
    pub(crate) pairs: bool,
    /// Weights of norms are stored whole, where safetensors have their distance from 1.
    pub(crate) whole_norms: bool,
}

const fn same(model_type: &'static str) -> TensorFamily {
    TensorFamily { model_type, post_norms: false, pairs: false, whole_norms: false }
}

const fn pairs(model_type: &'static str) -> TensorFamily {
    TensorFamily { pairs: true, ..same(model_type) }
}

const fn post_norms(model_type: &'static str) -> TensorFamily {
    TensorFamily { post_norms: true, ..same(model_type) }
}

const fn whole_norms(family: TensorFamily) -> TensorFamily {
    TensorFamily { whole_norms: true, ..family }
}

const FAMILIES: &[TensorFamily] = &[
    pairs("llama"),
    pairs("mistral"),
    pairs("mixtral"),
    pairs("smollm3"),
    same("qwen2"),
    same("qwen3"),
    same("qwen3_moe"),
    same("qwen2_moe"),
    whole_norms(same("gemma")),
    whole_norms(post_norms("gemma2")),
    whole_norms(post_norms("gemma3_text")),
    same("phi3"),
    post_norms("olmo2"),
    post_norms("olmo3"),
    post_norms("gpt_oss"),
    post_norms("seed_oss"),
    same("cohere"),
    same("cohere2"),
    same("stablelm"),
    same("starcoder2"),
    same("glm"),
    same("minimax_m2"),
    post_norms("exaone4"),
    pairs("granite"),
    same("ernie4_5"),
];

impl TensorFamily {
    /// The family of a configuration.
    pub(crate) fn of(config: &RawConfig) -> Result<TensorFamily, ConvertError> {
        let model_type = config.model_type()?;
        FAMILIES.iter().copied().find(|family| family.model_type == model_type).ok_or_else(|| {
            let known = FAMILIES.iter().map(|family| family.model_type).collect::<Vec<_>>().join(", ");
            ConvertError::UnknownFamily { file: config.file().to_owned(), model_type: model_type.to_owned(), known }
        })
    }
}
