//! What no operator computes: the op's reference, on the host, on copies of the operands.

use crate::node_operation::{NodeOperand, NodeOperation};
use crate::status::refused;
use std::panic::{AssertUnwindSafe, catch_unwind};
use yirage_hal::driver::DriverError;
use yirage_ir::{DType, Dims, Tensor};

/// Bytes of an operand in a step of these sizes.
pub(crate) fn operand_bytes(operand: &NodeOperand, dims: &Dims) -> u64 {
    operand.whole().storage_bytes(dims) as u64
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
