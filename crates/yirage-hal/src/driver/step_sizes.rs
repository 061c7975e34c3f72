//! The sizes of a step as kernels find them in the device's memory.
//!
//! A captured graph is made once, for the largest sizes of its plan; what a step's sizes are, its kernels read here. So the
//! graph is the same for every step, however the sequences grow.

use yirage_ir::Dims;

/// Bytes of the block: four 32-bit numbers, little-endian: tokens, sequences, blocks of a table's row, rows of output.
pub const STEP_SIZES_BYTES: u64 = 16;

/// The block of these sizes.
pub fn step_sizes(dims: &Dims) -> [u8; STEP_SIZES_BYTES as usize] {
    let mut block = [0; STEP_SIZES_BYTES as usize];
    let numbers = [dims.tokens, dims.seqs, dims.blocks, dims.rows];
    for (bytes, number) in block.as_chunks_mut().0.iter_mut().zip(numbers) {
        *bytes = number.to_le_bytes();
    }
    block
}

/// The sizes in a block.
pub fn sizes_of_block(block: &[u8; STEP_SIZES_BYTES as usize]) -> Dims {
    let [tokens, seqs, blocks, rows] = [0, 1, 2, 3].map(|at| u32::from_le_bytes(block.as_chunks().0[at]));
    Dims { tokens, seqs, blocks, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_back() {
        let dims = Dims { tokens: 1, seqs: 258, blocks: u32::MAX, rows: 0 };
        let block = step_sizes(&dims);
        assert_eq!(block[..8], [1, 0, 0, 0, 2, 1, 0, 0]);
        assert_eq!(sizes_of_block(&block), dims);
    }
}
