//! DeepSeek-V3.2 (arXiv 2512.02556) and GLM-5, which has its layers: as DeepSeek-V3, with attention to the positions that an
//! index of each layer chooses.
//!
//! While there are no more positions than are chosen, all are, so the index is not computed; further positions are refused.

use super::deepseek_v3;
use super::emit::ModelBuilder;
use crate::error::ModelError;

/// The tensors of an index.
const INDEX: [&str; 5] = ["wq_b.weight", "wk.weight", "k_norm.weight", "k_norm.bias", "weights_proj.weight"];

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.check_positions()?;
    for l in 0..e.config.layers()? {
        INDEX.iter().for_each(|part| e.pass_over(&format!("model.layers.{l}.self_attn.indexer.{part}")));
    }
    deepseek_v3::emit(e)
}
