//! What no operator computes: the op's reference, on the host, on copies of the operands. Of a paged cache only the blocks are copied
//! that the step's table names.

use crate::node_operation::{NodeOperand, NodeOperation};
use crate::status::refused;
use std::panic::{AssertUnwindSafe, catch_unwind};
use yirage_hal::driver::DriverError;
use yirage_ir::{DType, Dims, Op, Tensor};

/// Bytes of an operand in a step of these sizes.
pub(crate) fn operand_bytes(operand: &NodeOperand, dims: &Dims) -> u64 {
    operand.whole().storage_bytes(dims) as u64
}

/// Which inputs of a node are a paged cache that is only read, and the table of its blocks; none of a node without.
pub(crate) fn paged_inputs(node: &NodeOperation) -> Option<(usize, usize)> {
    matches!(&node.op, Op::Attention(attention) if attention.cached).then_some((1, 4))
}

/// The blocks that a table names, each once, and the table by their numbers among these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NamedBlocks {
    pub(crate) blocks: Vec<u32>,
    /// As the table lies in memory. What names no block of the cache is -1, which a reference does not read.
    pub(crate) table: Vec<u8>,
}

impl NamedBlocks {
    /// Of a table as it lies in memory, for a cache of so many blocks.
    pub(crate) fn of(table: &[u8], all: u32) -> NamedBlocks {
        let named = |word: &[u8; 4]| u32::try_from(i32::from_le_bytes(*word)).ok().filter(|&block| block < all);
        let words = table.as_chunks().0;
        let mut blocks: Vec<u32> = words.iter().filter_map(named).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let number = |word| named(word).and_then(|block| blocks.binary_search(&block).ok()).map_or(-1, |at| at as i32);
        let table = words.iter().flat_map(|word| number(word).to_le_bytes()).collect();
        NamedBlocks { blocks, table }
    }
}

/// Evaluates a node for the bytes of its inputs; the bytes of its outputs.
///
/// # Errors
/// Inputs that are shorter than their types, outputs of another length, and a reference that panicked.
pub(crate) fn evaluate(node: &NodeOperation, dims: &Dims, inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>, DriverError> {
    let name = node.op.name();
    let tensors = node.inputs.iter().zip(inputs).map(|(operand, bytes)| tensor(operand, dims, bytes));
    let tensors = tensors.collect::<Result<Vec<Tensor>, DriverError>>()?;
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    // A reference that goes wrong ends its step, not the device.
    let made = catch_unwind(AssertUnwindSafe(|| node.op.eval(&inputs)));
    let made = made.map_err(|_| refused("host", format!("the reference of `{name}` panicked")))?;
    let outputs: Vec<Vec<u8>> = made.iter().map(Tensor::memory).collect();
    let fits = |(operand, bytes): (&NodeOperand, &Vec<u8>)| operand_bytes(operand, dims) == bytes.len() as u64;
    if outputs.len() != node.outputs.len() || !node.outputs.iter().zip(&outputs).all(fits) {
        return Err(refused("host", format!("`{name}` gave outputs of other sizes than its types have at {dims:?}")));
    }
    Ok(outputs)
}

fn tensor(operand: &NodeOperand, dims: &Dims, bytes: &[u8]) -> Result<Tensor, DriverError> {
    let (ty, wanted) = (operand.whole(), operand_bytes(operand, dims));
    if bytes.len() as u64 != wanted {
        return Err(refused("host", format!("{} bytes are given of {ty}, which has {wanted}", bytes.len())));
    }
    let shape = || ty.shape.iter().map(|dim| dim.get(dims)).collect::<Vec<usize>>();
    Ok(match (ty.activation_format, ty.dtype) {
        (Some(format), _) => Tensor::quantized(format, shape(), bytes.to_vec()),
        (None, DType::Stored(format)) if operand.is_weight => Tensor::stored(format, shape(), bytes.to_vec()),
        _ => Tensor::from_memory(&ty, dims, bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_each_block_once() {
        let bytes = |table: &[i32]| table.iter().flat_map(|block| block.to_le_bytes()).collect::<Vec<u8>>();
        let named = NamedBlocks::of(&bytes(&[7, -1, 3, 7, 900, i32::MIN]), 900);
        assert_eq!(named, NamedBlocks { blocks: vec![3, 7], table: bytes(&[1, -1, 0, 1, -1, -1]) });
        assert_eq!(NamedBlocks::of(&[], 4), NamedBlocks { blocks: Vec::new(), table: Vec::new() });
    }
}
