//! What a launch does: it reads its operands from the device's memory, evaluates a node, and writes what comes out.

use crate::arguments::{KernelOperand, decode};
use crate::memory::SimMemory;
use crate::shared_module::SharedModule;
use crate::weight_tiles::WeightTiles;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use yirage_hal::driver::{Binding, BufferSlice, DriverError, sizes_of_block};
use yirage_ir::interp::evaluate_node;
use yirage_ir::{DType, Dims, Graph, Op, Tensor, Type, ValueId, ValueSource, text};
use yirage_plan::WeightPlan;

/// Code that a device was given, of either kind.
#[derive(Debug)]
pub(crate) enum SimModule {
    References(Module),
    Shared(SharedModule),
}

impl SimModule {
    /// The number of the kernel of this name.
    pub(crate) fn kernel(&self, entry: &str) -> Result<usize, DriverError> {
        let found = match self {
            SimModule::References(module) => return module.node(entry),
            SimModule::Shared(module) => module.kernel(entry),
        };
        found.ok_or_else(|| failed("launch", &format!("the module has no kernel `{entry}`")))
    }
}

/// Code whose kernels are the references of ops.
#[derive(Debug)]
pub(crate) struct Module {
    weights: WeightPlan,
    graph: Graph,
}

/// An operand: where it lies, and how many blocks it has if it is a KV cache.
struct SimOperand {
    slice: BufferSlice,
    blocks: Option<u32>,
}

impl Module {
    /// Reads code.
    pub(crate) fn new(code: &[u8]) -> Result<Module, DriverError> {
        let text = str::from_utf8(code).map_err(|e| failed("module", &e))?;
        // A line a weight, then the graph.
        let (weights, graph) = text.split_at(text.find("graph ").unwrap_or(text.len()));
        let weights = WeightPlan::parse(weights).map_err(|e| failed("module", &e))?;
        Ok(Module { weights, graph: text::parse(graph).map_err(|e| failed("module", &e))? })
    }

    /// Code without a kernel.
    pub(crate) fn empty() -> Module {
        Module { weights: WeightPlan::default(), graph: Graph::default() }
    }

    /// The node that a kernel's name stands for.
    pub(crate) fn node(&self, entry: &str) -> Result<usize, DriverError> {
        let number = entry.parse().ok().filter(|&n| n < self.graph.nodes.len());
        number.ok_or_else(|| failed("launch", &format!("the module has no kernel `{entry}`")))
    }

    /// Runs a node. The first binding is the step's sizes.
    pub(crate) fn run(
        &self,
        node: usize,
        bindings: &[Binding],
        arguments: &[u8],
        memory: &mut SimMemory,
    ) -> Result<(), DriverError> {
        let missing = || failed("launch", &"a binding is missing");
        let sizes = memory.read(bindings.first().ok_or_else(missing)?.slice)?;
        let dims = sizes_of_block(sizes.try_into().map_err(|e| failed("launch", &e))?);
        let node = &self.graph.nodes[node];
        let operand = |KernelOperand { binding, blocks }| {
            let bound = bindings.get(binding as usize).ok_or_else(missing)?;
            Ok(SimOperand { slice: bound.slice, blocks })
        };
        let operands = decode(arguments)?.into_iter().map(operand).collect::<Result<Vec<_>, DriverError>>()?;
        let (ins, outs) = operands.split_at_checked(node.ins.len()).ok_or_else(missing)?;
        if outs.len() != node.outs.len() {
            return Err(missing());
        }
        let read = |(&value, operand): (&ValueId, &SimOperand)| self.read(value, operand, &dims, memory);
        let inputs = node.ins.iter().zip(ins).map(read).collect::<Result<Vec<_>, _>>()?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        // A kernel that goes wrong ends its step, not the device.
        let made = catch_unwind(AssertUnwindSafe(|| evaluate_node(Op::eval, node, &inputs)));
        let made = made.map_err(|_| failed("launch", &format!("`{}` panicked", node.name())))?;
        for (tensor, operand) in made.map_err(|e| failed("launch", &e))?.iter().zip(outs) {
            let bytes = tensor.memory();
            memory.write(inside(operand.slice, bytes.len())?)?.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn read(
        &self,
        value: ValueId,
        operand: &SimOperand,
        dims: &Dims,
        memory: &SimMemory,
    ) -> Result<Tensor, DriverError> {
        let (ty, weight) = (self.graph.ty(value), self.graph.value(value).source == ValueSource::Weight);
        let ty = match operand.blocks {
            Some(blocks) => Type::new(ty.dtype, [blocks.into()].into_iter().chain(ty.shape.iter().copied())),
            // A view of a file's memory lies dense here.
            None if weight => ty.dense(),
            None => ty.clone(),
        };
        let tiles = match self.weights.get(&self.graph.value(value).name).filter(|_| weight) {
            Some(entry) => WeightTiles::of(entry).map_err(|e| failed("launch", &e))?,
            None => None,
        };
        let bytes = match tiles {
            Some(tiles) => tiles.unpack(memory.read(inside(operand.slice, tiles.bytes())?)?).into(),
            None => Cow::Borrowed(memory.read(inside(operand.slice, ty.storage_bytes(dims))?)?),
        };
        let shape = || ty.shape.iter().map(|d| d.get(dims)).collect::<Vec<usize>>();
        Ok(match (ty.activation_format, ty.dtype) {
            (Some(layout), _) => Tensor::quantized(layout, shape(), bytes.to_vec()),
            (None, DType::Stored(format)) if weight => Tensor::stored(format, shape(), bytes.to_vec()),
            _ => Tensor::from_memory(&ty, dims, &bytes),
        })
    }
}

/// So many bytes of a binding, which a kernel does not leave.
fn inside(slice: BufferSlice, bytes: usize) -> Result<BufferSlice, DriverError> {
    slice.part(0, bytes as u64).ok_or_else(|| failed("launch", &format!("{bytes} bytes of the binding {slice:?}")))
}

fn failed(call: &'static str, why: &dyn std::fmt::Display) -> DriverError {
    DriverError::Failed { call, why: why.to_string() }
}
