//! A node of a plan as an operation of the driver: what the library of kernels leaves for the driver to prepare.

use crate::operators::{OperandElement, TensorMemory, TensorView};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::HalError;
use yirage_hal::driver::{DriverError, OperandBindings, ValueSlices};
use yirage_ir::{Dims, Graph, Node, NodeKind, Op, Type, ValueId, ValueSource};

/// Bindings before those of the node: the sizes of a step.
const BEFORE: usize = 1;

/// An operand of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeOperand {
    pub(crate) ty: Type,
    /// The binding in which it lies, the step's sizes among them.
    pub(crate) binding: usize,
    /// Blocks of a KV cache; none of another value.
    pub(crate) blocks: Option<u32>,
    pub(crate) is_weight: bool,
}

/// A node by itself.
#[derive(Clone, Debug)]
pub(crate) struct NodeOperation {
    pub(crate) op: Op,
    pub(crate) inputs: Vec<NodeOperand>,
    pub(crate) outputs: Vec<NodeOperand>,
    /// The plan's largest sizes.
    pub(crate) largest: Dims,
    /// Whether the plan says that the host evaluates it.
    pub(crate) on_host: bool,
}

impl NodeOperation {
    /// Of a node that is bound so.
    ///
    /// # Errors
    /// A region, of which this backend has none, and a cache without blocks.
    pub(crate) fn of(
        graph: &Graph,
        node: &Node,
        bound: &OperandBindings,
        values: &dyn ValueSlices,
    ) -> Result<NodeOperation, HalError> {
        let region = || HalError::Load(format!("`{}` is no single op: this backend fuses none", node.name()));
        let NodeKind::Op(op) = &node.kind else { return Err(region()) };
        let operand = |(&id, &binding): (&ValueId, &u32)| {
            let is_weight = graph.value(id).source == ValueSource::Weight;
            let blocks = graph.kv_cache_of(id).map(|_| values.blocks(id)).transpose()?;
            // A weight's strides end when it is loaded.
            let ty = if is_weight { graph.ty(id).dense() } else { graph.ty(id).clone() };
            Ok(NodeOperand { ty, binding: binding as usize + BEFORE, blocks, is_weight })
        };
        let (ins, outs) = bound.operands.split_at(node.ins.len());
        Ok(NodeOperation {
            op: op.clone(),
            inputs: node.ins.iter().zip(ins).map(operand).collect::<Result<_, HalError>>()?,
            outputs: node.outs.iter().zip(outs).map(operand).collect::<Result<_, HalError>>()?,
            largest: Dims::default(),
            on_host: false,
        })
    }
}

impl NodeOperand {
    /// The type with the blocks of a cache as its outermost dimension.
    pub(crate) fn whole(&self) -> Type {
        let blocks = self.blocks.map(Into::into).into_iter();
        Type { shape: blocks.chain(self.ty.shape.iter().copied()).collect(), ..self.ty.clone() }
    }

    /// As a tensor in a step of these sizes, of one element where it has no dimension; none where no operator reads it.
    pub(crate) fn tensor(&self, dims: &Dims) -> Option<TensorView> {
        let ty = self.whole();
        if ty.activation_format.is_some() || ty.strides.is_some() {
            return None;
        }
        let mut shape: Vec<u64> = ty.shape.iter().map(|dim| dim.get(dims) as u64).collect();
        if shape.is_empty() {
            shape.push(1);
        }
        Some(TensorView::dense(TensorMemory::Binding(self.binding), OperandElement::of(ty.dtype)?, shape))
    }
}

/// What the library has described and the driver has not prepared yet. A descriptor is a number in it.
#[derive(Default)]
pub(crate) struct NodeTable(Mutex<DescribedNodes>);

#[derive(Default)]
struct DescribedNodes {
    nodes: HashMap<u64, Arc<NodeOperation>>,
    last: u64,
}

impl NodeTable {
    /// Keeps a node; its descriptor.
    pub(crate) fn describe(&self, node: NodeOperation) -> Vec<u8> {
        let mut described = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        described.last += 1;
        let number = described.last;
        described.nodes.insert(number, Arc::new(node));
        number.to_le_bytes().to_vec()
    }

    /// The node of a descriptor, which is used once.
    pub(crate) fn take(&self, descriptor: &[u8]) -> Result<Arc<NodeOperation>, DriverError> {
        let mut described = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = descriptor.try_into().ok().map(u64::from_le_bytes);
        let unknown = || crate::status::refused("prepare", "the descriptor is none of this device's library");
        number.and_then(|number| described.nodes.remove(&number)).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::op::Softmax;

    #[test]
    fn a_descriptor_is_used_once() {
        let table = NodeTable::default();
        let node = NodeOperation {
            op: Softmax {}.into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            largest: Dims::default(),
            on_host: true,
        };
        let descriptor = table.describe(node);
        assert!(table.take(&descriptor).is_ok() && table.take(&descriptor).is_err() && table.take(&[1, 2]).is_err());
    }
}
