//! Mirage's layer methods that are not here, each with its reason and what to use in its place.

use crate::error::PersistentError;

/// Beginnings of names, and why there is no such layer.
const MISSING: &[(&str, &str)] = &[
    ("mla_", "latent attention has no layer methods yet; a model of it runs from its files"),
    ("mtp_", "draft heads of a model are not run; use prompt lookup, or a draft model in the engine"),
    ("softmax_gather", "it belongs to the verification of draft heads, which are not run"),
    ("prob_", "it belongs to the verification of draft heads, which are not run"),
    ("quantize_fp8", "no device here computes with 8-bit floats; attach weights of float32, float16 or bfloat16"),
    ("linear_fp8", "no device here computes with 8-bit floats; use linear_layer with bfloat16 weights"),
    ("moe_w13_fp8", "no device here computes with 8-bit floats; use moe_w13_linear_layer with bfloat16 weights"),
    ("moe_w2_fp8", "no device here computes with 8-bit floats; use moe_w2_linear_layer with bfloat16 weights"),
    ("paged_attention_split_kv", "attention is cut among workers anew in each step; use paged_attention_layer"),
    ("draft_forward", "a draft model is the engine's; use prompt lookup"),
    ("tensor_init", "no tensor is read before a layer writes it"),
    ("attach_nvshmem_tensor", "a kernel runs in one process; use attach_input"),
    ("nvshmem", "a kernel runs in one process; use allreduce_layer, whose sum over one is its input"),
];

/// Why Mirage's layer method of this name is not here; none for a name that is no method of Mirage's either.
#[must_use]
pub fn missing_layer(method: &str) -> Option<PersistentError> {
    let (_, why) = MISSING.iter().find(|(beginning, _)| method.starts_with(beginning))?;
    Some(PersistentError::Unsupported { what: format!("the layer method `{method}`"), why: (*why).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_layer_says_why_and_what_to_use() {
        for (beginning, why) in MISSING {
            let error = missing_layer(&format!("{beginning}_layer")).unwrap();
            assert!(error.is_unsupported() && error.to_string().contains(why), "{error}");
        }
        assert!(missing_layer("mla_decode_layer").unwrap().to_string().contains("latent attention"));
        assert!(missing_layer("linera_layer").is_none());
    }
}
