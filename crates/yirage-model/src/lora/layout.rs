//! Where the matrices of several adapters stand beside each other.

use super::LoraAdapter;
use std::ops::Range;

/// Columns are counted in so many, which kernels take well.
const STEP: usize = 32;

/// The columns of each of several adapters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoraLayout {
    columns: Vec<Range<usize>>,
}

impl LoraLayout {
    /// That of adapters, in their order: each has as many columns as its largest rank.
    pub fn of(adapters: &[LoraAdapter]) -> LoraLayout {
        let mut first = 0;
        let columns = adapters.iter().map(|adapter| {
            let columns = first..first + adapter.rank();
            first = columns.end;
            columns
        });
        LoraLayout { columns: columns.collect() }
    }

    /// The columns of each.
    pub fn columns(&self) -> &[Range<usize>] {
        &self.columns
    }

    /// All columns, those that nothing stands in at the end included; 0 for no adapters.
    pub fn width(&self) -> u32 {
        self.columns.last().map_or(0, |last| last.end.next_multiple_of(STEP) as u32)
    }

    /// A token's row of scales for those of the adapters, in their order.
    pub fn row(&self, scales: &[f32]) -> Vec<f32> {
        let mut row = vec![0.0; self.width() as usize];
        for (columns, scale) in self.columns.iter().zip(scales) {
            row[columns.clone()].fill(*scale);
        }
        row
    }
}
