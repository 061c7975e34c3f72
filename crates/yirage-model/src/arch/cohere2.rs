//! Cohere's Command R7B and Command A (2024, arXiv 2504.00698): Command R with windows in most layers, which alone
//! rotate.

use super::cohere;
use super::emit::ModelBuilder;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let layers: Vec<_> = e.config.windows()?.into_iter().map(|window| (window.is_some(), window)).collect();
    cohere::frame(e, &layers)
}
