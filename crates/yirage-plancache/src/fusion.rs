//! Measured times by which graphs are fused, and what may be decided of one.

use crate::array::HostArray;
use std::fmt;
use yirage_ir::Dims;

/// The sizes of a call by which times are looked up: those of its first input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallShape {
    /// All leading dimensions together; 1 where there is none.
    pub batch: u64,
    /// The last dimension but one; 1 where there is none.
    pub sequence: u64,
    /// The last dimension; 1 where there is none.
    pub hidden: u64,
}

impl CallShape {
    /// That of a call with these inputs.
    pub fn of(inputs: &[HostArray]) -> CallShape {
        let sizes = |array: &HostArray| -> Vec<u64> {
            array.ty().shape.iter().map(|dim| dim.get(&Dims::default()) as u64).collect()
        };
        let sizes = inputs.first().map(sizes).unwrap_or_default();
        let from_end = |n: usize| sizes.len().checked_sub(n).map_or(1, |at| sizes[at]);
        let leading = sizes.iter().rev().skip(2).fold(1u64, |all, &n| all.saturating_mul(n));
        CallShape { batch: leading, sequence: from_end(2), hidden: from_end(1) }
    }
}

/// Times of one shape, measured by whoever made the profile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProfiledShape {
    /// The shape.
    pub shape: CallShape,
    /// Time without fusion, in any unit that all rows share.
    pub unfused: f64,
    /// Time with it.
    pub fused: f64,
}

/// Measured times that decide what is fused.
#[derive(Clone, PartialEq, Debug)]
pub struct FusionProfile {
    /// In any order.
    pub rows: Vec<ProfiledShape>,
    /// A graph is fused where it is slower without by more than this part: 0.1 is a tenth.
    pub margin: f64,
}

impl FusionProfile {
    /// The row that tells of a shape: of the same batch and hidden size the longest sequence that is not longer.
    pub fn nearest(&self, shape: CallShape) -> Option<&ProfiledShape> {
        let alike = |row: &&ProfiledShape| {
            let of = row.shape;
            (of.batch, of.hidden) == (shape.batch, shape.hidden) && of.sequence <= shape.sequence
        };
        self.rows.iter().filter(alike).max_by_key(|row| row.shape.sequence)
    }
}

/// Whether a graph is fused, and why.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FusionDecision {
    /// No table was given: it is fused.
    NoProfile,
    /// The table has nothing of such a shape: it is fused.
    NotProfiled(CallShape),
    /// The table says that it pays.
    Pays(ProfiledShape),
    /// The table says that it does not.
    DoesNotPay(ProfiledShape),
    /// It has fewer nodes than are fused.
    FewNodes {
        /// Its nodes.
        nodes: usize,
        /// Fewest that are fused.
        least: usize,
    },
    /// It has more nodes than are fused.
    ManyNodes {
        /// Its nodes.
        nodes: usize,
        /// Most that are fused.
        most: usize,
    },
    /// Its largest value has fewer elements than are worth it.
    FewElements {
        /// Elements of its largest value.
        elements: u64,
        /// Fewest that are worth it.
        least: u64,
    },
}

impl FusionDecision {
    /// Whether it is fused.
    pub fn fuse(&self) -> bool {
        matches!(self, FusionDecision::NoProfile | FusionDecision::NotProfiled(_) | FusionDecision::Pays(_))
    }
}

impl fmt::Display for FusionDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |f: &mut fmt::Formatter<'_>, row: &ProfiledShape, what: &str| {
            let CallShape { batch, sequence, hidden } = row.shape;
            let (unfused, fused) = (row.unfused, row.fused);
            write!(f, "{what} by the profile of {batch} x {sequence} x {hidden}: {unfused} without, {fused} with it")
        };
        match self {
            FusionDecision::NoProfile => f.write_str("no profile is given, and fusion is the default"),
            FusionDecision::NotProfiled(CallShape { batch, sequence, hidden }) => {
                write!(f, "the profile has nothing of {batch} x {sequence} x {hidden}, and fusion is the default")
            }
            FusionDecision::Pays(row) => times(f, row, "it pays"),
            FusionDecision::DoesNotPay(row) => times(f, row, "it does not pay"),
            FusionDecision::FewNodes { nodes, least } => write!(f, "it has {nodes} nodes, from {least} on it is fused"),
            FusionDecision::ManyNodes { nodes, most } => write!(f, "it has {nodes} nodes, up to {most} are fused"),
            FusionDecision::FewElements { elements, least } => {
                write!(f, "its largest value has {elements} elements, from {least} on it is fused")
            }
        }
    }
}
