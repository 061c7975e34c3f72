//! Low-rank adapters beside a model's products: `x W^T + ((x A^T) * scales) B^T`, with scales for each token.
//!
//! The matrices of all adapters stand side by side, each in columns of its own, so that tokens of one step may use
//! different ones: where an adapter's scale is 0, what it adds is 0. It knows no request and no scale.

use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::lora::{LoraAdapter, LoraLayout};
use crate::low_rank::LoraTarget;
use crate::weights::{WeightBinding, WeightSource, WeightView};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use yirage_ir::ValueId;

/// The step input of the scales: f32 `[Tokens, width]` of the layout.
pub const LORA_SCALES: &str = "lora.scales";

/// The adapters of a model under construction.
pub(super) struct LowRankBranches {
    layout: LoraLayout,
    /// What each adapter has for a tensor, by the tensor and the adapter's place.
    targets: BTreeMap<(String, usize), LoraTarget>,
    used: BTreeSet<(String, usize)>,
    files: Vec<String>,
    /// The rows of [`LORA_SCALES`] whose logits are wanted.
    pub(super) wanted_scales: Option<ValueId>,
}

/// What stands beside a product: A of f32 `[width, k]` and B of f32 `[n, width]`.
pub(super) struct LowRankMatrices {
    pub(super) width: u32,
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
}

impl LowRankBranches {
    pub(super) fn new(checkpoint: &Checkpoint, adapters: &[LoraAdapter]) -> Result<LowRankBranches, ModelError> {
        let mut targets = BTreeMap::new();
        for (at, adapter) in adapters.iter().enumerate() {
            targets.extend(adapter.targets(checkpoint)?.into_iter().map(|t| ((t.tensor.clone(), at), t)));
        }
        Ok(LowRankBranches {
            layout: LoraLayout::of(adapters),
            targets,
            used: BTreeSet::new(),
            files: adapters.iter().map(|a| a.path().display().to_string()).collect(),
            wanted_scales: None,
        })
    }

    pub(super) fn width(&self) -> u32 {
        self.layout.width()
    }

    /// What stands beside the product by a weight; none where no adapter has anything for it.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for a weight that is a part of a tensor which no rows of B are.
    pub(super) fn beside(&mut self, weight: &WeightBinding) -> Result<Option<LowRankMatrices>, ModelError> {
        let WeightSource::Stored(views) = &weight.source else { return Ok(None) };
        let (width, k, n) = (self.width() as usize, weight.width(), weight.rows());
        let mut matrices = LowRankMatrices { width: self.width(), a: Vec::new(), b: Vec::new() };
        let mut first = 0;
        let mut filled = BTreeMap::new();
        for view in views {
            for (at, columns) in self.layout.columns().iter().enumerate() {
                let key = (view.tensor.clone(), at);
                let Some(target) = self.targets.get(&key) else { continue };
                let rows =
                    matrix_rows(view, target, k).filter(|_| *filled.entry(at).or_insert(&view.tensor) == &view.tensor);
                let Some(rows) = rows else {
                    return Err(self.not_beside(&key, "the model computes with parts of it that no rows of it are"));
                };
                matrices.a.resize(width * k, 0.0);
                matrices.b.resize(n * width, 0.0);
                let pair = target.pair();
                for l in 0..pair.rank() {
                    matrices.a[(columns.start + l) * k..][..k].copy_from_slice(pair.a_row(l));
                }
                for (row, of) in rows.into_iter().enumerate() {
                    matrices.b[(first + row) * width + columns.start..][..pair.rank()].copy_from_slice(pair.b_row(of));
                }
                self.used.insert(key);
            }
            first += view.elements() / k.max(1);
        }
        Ok((!matrices.a.is_empty()).then_some(matrices))
    }

    fn not_beside(&self, (tensor, at): &(String, usize), why: &str) -> ModelError {
        let named = self.targets.get(&(tensor.clone(), *at)).map_or("", LoraTarget::named);
        ModelError::Unsupported {
            what: format!("the adapter's tensor {named:?} beside the model"),
            why: format!("{}: it is for {tensor:?}: {why}; merge it into the weights: --lora-merge", self.files[*at]),
        }
    }

    /// Checks that every pair stands somewhere.
    pub(super) fn check_used(&self) -> Result<(), ModelError> {
        match self.targets.keys().find(|key| !self.used.contains(key)) {
            None => Ok(()),
            Some(key) => Err(self.not_beside(key, "the model does not multiply whole rows of tokens by it")),
        }
    }
}

/// For each row of `k` elements of a view of the tensor that a pair is for: the row of B that belongs to it. None where a
/// row of the view is no such row.
fn matrix_rows(view: &WeightView, target: &LoraTarget, k: usize) -> Option<Vec<usize>> {
    if k != target.inputs() || k == 0 || !view.elements().is_multiple_of(k) {
        return None;
    }
    let outputs = target.outputs();
    let step = if target.transposed { outputs } else { 1 };
    let row = |row: usize| {
        let at = view.stored_index(row * k);
        // Rows lie evenly: the last of an element's neighbours says where all are.
        let even = view.stored_index(row * k + k - 1) == at + (k - 1) * step && view.inner_step(k) == Some(step);
        let of = if target.transposed { at } else { at / k };
        let begins = target.transposed || at.is_multiple_of(k);
        (even && begins && of < outputs).then_some(of)
    };
    (0..view.elements() / k).map(row).collect()
}

/// The source of a matrix.
pub(super) fn given(values: Vec<f32>) -> WeightSource {
    WeightSource::Given(Arc::new(values))
}
