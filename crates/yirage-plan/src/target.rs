//! What the compiler is told of a device: facts, as data.

use crate::program::{ExecutorKind, Stage};
use crate::rules::OpRule;
use yirage_ir::{DType, Dims, RegionKind, Type};

/// A kernel a target has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelFacts {
    /// `backend/kernel@version`.
    pub name: String,
    /// The variant the device will run (its instruction set).
    pub variant: String,
    /// Kinds of regions it runs, beside single ops.
    pub regions: Vec<RegionKind>,
    /// The ops it runs, single or in such regions, and what each may read.
    pub rules: Vec<OpRule>,
    /// Its stages, in order.
    pub stages: Vec<Stage>,
    /// Whether it uses scratch memory that the device divides among the kernels of a phase.
    pub scratch: bool,
}

/// A device as the compiler sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Backend name.
    pub family: String,
    /// Architecture and instruction set.
    pub arch: String,
    /// Workers that share a step.
    pub workers: u32,
    /// The layout of weights that only products and look-ups read; [`crate::weights::ROWS`] where they stay as they are.
    pub product_layout: String,
    /// Bytes of one block of 32 quantised activations as the target stores it.
    pub q8a_block_bytes: u32,
    /// Rows of quantised activations are padded to a multiple of this many elements.
    pub q8a_row_multiple: u32,
    /// Alignment of every buffer, in bytes.
    pub align: u32,
    /// The executors it has. A plan gets a task program for each that runs one.
    pub executors: Vec<ExecutorKind>,
    /// Kernels, most wanted first.
    pub kernels: Vec<KernelFacts>,
}

impl Target {
    /// Bytes that a value takes in the target's memory; `None` where that is no number.
    pub fn storage_bytes(&self, ty: &Type, dims: &Dims) -> Option<u64> {
        match ty.dtype {
            DType::Q8A => {
                let width = ty.width()?;
                let rows = ty.checked_elems(dims)?.checked_div(width).unwrap_or(0);
                let padded = width.checked_next_multiple_of(self.q8a_row_multiple as usize)?;
                let blocks = rows.checked_mul(padded)? / 32;
                u64::try_from(blocks).ok()?.checked_mul(u64::from(self.q8a_block_bytes))
            }
            _ => u64::try_from(ty.checked_bytes(dims)?).ok(),
        }
    }

    /// Workers, of which there is always one.
    pub fn queues(&self) -> u32 {
        self.workers.max(1)
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&KernelFacts> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// One line that names the target in plans and cache keys.
    pub fn describe(&self) -> String {
        format!("{} {} workers={}", self.family, self.arch, self.workers)
    }
}
