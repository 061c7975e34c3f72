//! What a launch does: it reads its operands from the device's memory, evaluates a node, and writes what comes out.

use crate::arguments::{CacheOperand, KernelOperand, decode};
use crate::memory::SimMemory;
use crate::shared_module::SharedModule;
use crate::weight_tiles::WeightTiles;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use yirage_hal::driver::{Binding, BufferSlice, DriverError, sizes_of_block};
use yirage_ir::interp::evaluate_node;
use yirage_ir::{DType, Dims, Graph, Op, Tensor, Type, ValueId, ValueSource, text};
use yirage_plan::{KvCacheLayoutFacts, WeightPlan};

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

/// An operand: where it lies, and what is known of it if it is a KV cache.
struct SimOperand {
    slice: BufferSlice,
    cache: Option<CacheOperand>,
}

impl SimOperand {
    /// How blocks of this type lie, where the operand is a cache whose layout is not that of its type.
    fn layout(&self, block: &Type) -> Option<KvCacheLayoutFacts> {
        let CacheOperand { order, align, .. } = self.cache?;
        let facts = KvCacheLayoutFacts { order, align, ..KvCacheLayoutFacts::rows(&[]) };
        facts.block_bytes(block).is_some().then_some(facts)
    }
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
        let operand = |KernelOperand { binding, cache }| {
            let bound = bindings.get(binding as usize).ok_or_else(missing)?;
            Ok(SimOperand { slice: bound.slice, cache })
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
        for ((tensor, operand), &out) in made.map_err(|e| failed("launch", &e))?.iter().zip(outs).zip(&node.outs) {
            let (bytes, block) = (tensor.memory(), self.graph.ty(out));
            let bytes = match operand.layout(block) {
                Some(layout) => layout.from_rows(block, &bytes).ok_or_else(|| failed("launch", &"blocks in part"))?,
                None => bytes,
            };
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
        if let Some(CacheOperand { blocks, .. }) = operand.cache {
            return read_cache(ty, blocks, operand, memory);
        }
        // A view of a file's memory lies dense here.
        let ty = if weight { ty.dense() } else { ty.clone() };
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

/// All blocks of a cache.
fn read_cache(block: &Type, blocks: u32, operand: &SimOperand, memory: &SimMemory) -> Result<Tensor, DriverError> {
    let ty = Type::new(block.dtype, [blocks.into()].into_iter().chain(block.shape.iter().copied()));
    let (dims, layout) = (Dims::default(), operand.layout(block));
    let each = layout.as_ref().and_then(|layout| layout.block_bytes(block));
    let bytes = each.map_or(ty.bytes(&dims), |each| blocks as usize * each as usize);
    let stored = memory.read(inside(operand.slice, bytes)?)?;
    let rows = match layout {
        Some(layout) => layout.to_rows(block, stored).ok_or_else(|| failed("launch", &"blocks in part"))?.into(),
        None => Cow::Borrowed(stored),
    };
    Ok(Tensor::from_memory(&ty, &dims, &rows))
}

/// So many bytes of a binding, which a kernel does not leave.
fn inside(slice: BufferSlice, bytes: usize) -> Result<BufferSlice, DriverError> {
    slice.part(0, bytes as u64).ok_or_else(|| failed("launch", &format!("{bytes} bytes of the binding {slice:?}")))
}

fn failed(call: &'static str, why: &dyn std::fmt::Display) -> DriverError {
    DriverError::Failed { call, why: why.to_string() }
}
