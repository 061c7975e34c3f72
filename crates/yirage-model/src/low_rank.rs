//! Pairs of low-rank matrices, and what of a model's tensor each is for: plain numbers, wherever they were read.

use std::sync::Arc;

/// The two matrices for one of the model's.
#[derive(Clone, PartialEq, Debug)]
pub struct LoraPair {
    /// The tensor of the first, as errors call it.
    pub(crate) tensor: String,
    /// What of the model it is for: a module, or a tensor.
    pub(crate) of: String,
    /// Rows of A and columns of B.
    pub(crate) rank: usize,
    /// Columns of A.
    pub(crate) inputs: usize,
    /// Rows of B.
    pub(crate) outputs: usize,
    /// A, row-major.
    pub(crate) a: Vec<f32>,
    /// B times alpha and whatever the rank divides it by, row-major.
    pub(crate) b: Vec<f32>,
}

impl LoraPair {
    /// Rows of A and columns of B.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Row `l` of A.
    pub(crate) fn a_row(&self, l: usize) -> &[f32] {
        &self.a[l * self.inputs..][..self.inputs]
    }

    /// Row `output` of B.
    pub(crate) fn b_row(&self, output: usize) -> &[f32] {
        &self.b[output * self.rank..][..self.rank]
    }
}

impl LoraPair {
    /// The same with B times a number.
    pub(crate) fn scaled(mut self, by: f64) -> LoraPair {
        self.b.iter_mut().for_each(|value| *value = (f64::from(*value) * by) as f32);
        self
    }
}

/// A pair and the tensor of a model that it is for, whose shape it fits. Cloning shares the matrices.
#[derive(Clone, Debug)]
pub struct LoraTarget {
    /// The tensor's name in the checkpoint.
    pub tensor: String,
    /// Whether the tensor is stored `[inputs, outputs]`.
    pub transposed: bool,
    pub(crate) pairs: Arc<Vec<LoraPair>>,
    pub(crate) at: usize,
}

impl LoraTarget {
    /// The matrices.
    pub fn pair(&self) -> &LoraPair {
        &self.pairs[self.at]
    }

    /// The adapter's tensor, for errors.
    pub(crate) fn named(&self) -> &str {
        &self.pair().tensor
    }

    /// Columns of the pair's first matrix.
    pub(crate) fn inputs(&self) -> usize {
        self.pair().inputs
    }

    /// Rows of the pair's second matrix.
    pub(crate) fn outputs(&self) -> usize {
        self.pair().outputs
    }

    /// Adds `scale * B * A` to elements of the stored tensor, from element `first` on.
    pub(crate) fn add_to(&self, values: &mut [f32], first: usize, scale: f32) {
        let pair = self.pair();
        let columns = if self.transposed { pair.outputs } else { pair.inputs };
        let mut delta = vec![0f32; columns];
        let (mut at, end) = (first, first + values.len());
        while at < end {
            let (row, column) = (at / columns, at % columns);
            let n = (columns - column).min(end - at);
            let delta = &mut delta[..n];
            delta.fill(0.0);
            for l in 0..pair.rank {
                if self.transposed {
                    let a = pair.a_row(l)[row];
                    let b = pair.b[l..].iter().step_by(pair.rank).skip(column);
                    delta.iter_mut().zip(b).for_each(|(d, b)| *d += a * b);
                } else {
                    let b = pair.b_row(row)[l];
                    delta.iter_mut().zip(&pair.a_row(l)[column..]).for_each(|(d, a)| *d += b * a);
                }
            }
            values[at - first..][..n].iter_mut().zip(&*delta).for_each(|(v, d)| *v += scale * d);
            at += n;
        }
    }
}
