//! Mirage's layer methods that are not here, each with its reason and what to use in its place.

use crate::error::PersistentError;

/// Beginnings of names, and why there is no such layer.
const MISSING: &[(&str, &str)] = &[
    (
        "mla_",
        "its other forms attend over rows that are no longer compressed; use mla_decode_layer or mla_prefill_layer",
    ),
    (
        "mtp_",
        "draft heads are not run in a persistent kernel; use prompt lookup, or the engine's `speculative_config={'method': 'mtp'}`",
    ),
    ("softmax_gather", "it belongs to the verification of draft heads, which are not run in a persistent kernel"),
    ("prob_", "it belongs to the verification of draft heads, which are not run in a persistent kernel"),
    ("linear_fp8_", "its other forms are a GPU's ways to compute the same; use linear_fp8_layer or linear_bmm_layer"),
    ("paged_attention_split_kv", "attention is cut among workers anew in each step; use paged_attention_layer"),
    ("draft_forward", "a draft model is the engine's; use prompt lookup"),
    ("tensor_init", "no tensor is read before a layer writes it"),
    ("attach_nvshmem_tensor", "a kernel runs in one process; use attach_input"),
    ("nvshmem", "all ranks run in one process; use allreduce_layer and join the ranks before"),
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
        assert!(missing_layer("mla_prefill_tp8_layer").unwrap().to_string().contains("mla_prefill_layer"));
        assert!(missing_layer("linera_layer").is_none());
    }
}
