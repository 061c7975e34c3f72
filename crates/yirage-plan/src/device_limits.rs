//! What a device's hardware bounds, as data. What bounds nothing is none, or an empty list.

use yirage_ir::DType;

/// A product of matrices that the hardware computes by one instruction: `[m, k] x [k, n]` into sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixShape {
    /// Rows of the first.
    pub m: u32,
    /// Columns of the second.
    pub n: u32,
    /// What is summed over.
    pub k: u32,
    /// The type of both.
    pub of: DType,
    /// The type of the sums.
    pub into: DType,
}

/// The limits of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceLimits {
    /// What offsets of buffers are multiples of, in bytes.
    pub align: u32,
    /// Most bytes that a block of a tiled region may take ([`yirage_ir::region::block_bytes`]): a worker's share of the
    /// cache in which its tiles live, or the memory that a block's threads share.
    pub block_bytes: Option<u64>,
    /// Elements of a product's right side that a block holds at once, where its kernels go through it in pieces.
    pub right_side_piece: Option<u64>,
    /// Most threads of a block.
    pub threads: Option<u32>,
    /// Most blocks of a grid, along each axis.
    pub grid: Option<[u32; 3]>,
    /// Most values that one kernel is bound to, the sizes of the step among them.
    pub bindings: Option<u32>,
    /// Most bytes of one of them.
    pub binding_bytes: Option<u64>,
    /// Threads that run in lockstep, where there is a choice the narrowest first.
    pub subgroup_widths: Vec<u32>,
    /// Products of matrices that it computes by one instruction.
    pub matrix_shapes: Vec<MatrixShape>,
}

impl DeviceLimits {
    /// Of a device that bounds nothing but where buffers begin.
    pub fn aligned(align: u32) -> DeviceLimits {
        DeviceLimits {
            align,
            block_bytes: None,
            right_side_piece: None,
            threads: None,
            grid: None,
            bindings: None,
            binding_bytes: None,
            subgroup_widths: Vec::new(),
            matrix_shapes: Vec::new(),
        }
    }
}
