//! How layers hang together: who reads what of whom.

use crate::tensor::TensorId;

/// A tensor as a layer reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LayerInput {
    pub(crate) tensor: TensorId,
    /// The layer that wrote what is read; none for a tensor that is attached.
    pub(crate) by: Option<usize>,
}

/// A layer as others see it.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) method: &'static str,
    pub(crate) reads: Vec<LayerInput>,
    pub(crate) writes: Vec<TensorId>,
    pub(crate) row_by_row: bool,
    pub(crate) chooses: bool,
}

/// Which layers only the choice of tokens reads, directly or through others of them.
pub(crate) fn rows_alone(wires: &[Wire]) -> Vec<bool> {
    let mut alone = vec![false; wires.len()];
    for at in (0..wires.len()).rev() {
        let readers = || wires.iter().enumerate().filter(|(_, w)| w.reads.iter().any(|read| read.by == Some(at)));
        let only = readers().all(|(reader, w)| alone[reader] || w.chooses);
        alone[at] = wires[at].row_by_row && readers().next().is_some() && only;
    }
    alone
}
