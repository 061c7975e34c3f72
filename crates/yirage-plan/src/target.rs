//! What the compiler is told of a device: facts, as data.

use crate::tasks::{ExecutorKind, Stage};
use std::fmt;
use std::str::FromStr;
use yirage_ir::{DType, Dims, Format, Type};

/// How matrix products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// f32 activations and accumulation; weights de-quantised exactly.
    Exact,
    /// int8 activations in blocks of 32 for quantised weights, bf16 products for BF16 weights.
    #[default]
    Fast,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::Exact => "exact",
            Precision::Fast => "fast",
        })
    }
}

impl FromStr for Precision {
    type Err = String;
    fn from_str(s: &str) -> Result<Precision, String> {
        match s {
            "exact" => Ok(Precision::Exact),
            "fast" => Ok(Precision::Fast),
            _ => Err(format!("`{s}` is no precision: `exact` or `fast` wanted")),
        }
    }
}

/// Which nodes a kernel can run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accepts {
    /// Single ops of this name.
    Op(String),
    /// Regions of row-wise ops, all of them listed here; also a single such op.
    Rows(Vec<String>),
    /// Regions of products that share one input, and single products.
    Products {
        /// Names of the ops.
        ops: Vec<String>,
        /// Weight formats.
        formats: Vec<Format>,
    },
}

/// A kernel a target has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelFacts {
    /// `backend/kernel@version`.
    pub name: String,
    /// The variant the device will run (its instruction set).
    pub variant: String,
    /// What it runs.
    pub accepts: Accepts,
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
    /// How products are computed.
    pub precision: Precision,
    /// Whether weights that only products and look-ups read are repacked, and the name of that layout.
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
    /// Bytes that a value takes in the target's memory.
    pub fn storage_bytes(&self, ty: &Type, dims: &Dims) -> u64 {
        match ty.dtype {
            DType::Q8A => {
                let width = ty.width().unwrap_or(0);
                let rows = ty.elems(dims).checked_div(width).unwrap_or(0);
                let padded = width.next_multiple_of(self.q8a_row_multiple as usize);
                (rows * padded / 32) as u64 * u64::from(self.q8a_block_bytes)
            }
            _ => ty.bytes(dims) as u64,
        }
    }

    /// One line that names the target in plans and cache keys.
    pub fn describe(&self) -> String {
        format!("{} {} {} workers={}", self.family, self.arch, self.precision, self.workers)
    }
}
