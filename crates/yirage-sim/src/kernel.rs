//! What a launch does: it reads its operands from the device's memory, evaluates a node, and writes what comes out.

use crate::memory::SimMemory;
use std::panic::{AssertUnwindSafe, catch_unwind};
use yirage_hal::driver::{Address, DriverError, KernelArg};
use yirage_ir::interp::evaluate_node;
use yirage_ir::{DType, Dims, Graph, Op, Tensor, Type, ValueId, ValueSource, text};

/// Code that a device was given.
#[derive(Debug)]
pub(crate) struct Module {
    graph: Graph,
}

/// An operand: where it lies, and how many blocks it has if it is a cache state.
struct SimOperand {
    at: Address,
    blocks: Option<u32>,
}

impl Module {
    /// Reads code.
    pub(crate) fn new(code: &[u8]) -> Result<Module, DriverError> {
        let text = str::from_utf8(code).map_err(|e| failed("module", &e))?;
        Ok(Module { graph: text::parse(text).map_err(|e| failed("module", &e))? })
    }

    /// The node that a kernel's name stands for.
    pub(crate) fn node(&self, entry: &str) -> Result<usize, DriverError> {
        let number = entry.parse().ok().filter(|&n| n < self.graph.nodes.len());
        number.ok_or_else(|| failed("launch", &format!("the module has no kernel `{entry}`")))
    }

    /// Runs a node.
    pub(crate) fn run(&self, node: usize, args: &[KernelArg], memory: &mut SimMemory) -> Result<(), DriverError> {
        let mut args = args.iter();
        let mut size = || number(args.next());
        let dims = Dims { tokens: size()?, seqs: size()?, blocks: size()?, rows: size()? };
        let node = &self.graph.nodes[node];
        let mut operand = |&value: &ValueId| {
            let Some(&KernelArg::Address(at)) = args.next() else {
                return Err(failed("launch", &"an address is missing"));
            };
            let state = self.graph.kv_cache_of(value).is_some();
            Ok(SimOperand { at, blocks: if state { Some(number(args.next())?) } else { None } })
        };
        let ins = node.ins.iter().map(&mut operand).collect::<Result<Vec<_>, _>>()?;
        let outs = node.outs.iter().map(&mut operand).collect::<Result<Vec<_>, _>>()?;
        let read = |(&value, operand): (&ValueId, &SimOperand)| self.read(value, operand, &dims, memory);
        let inputs = node.ins.iter().zip(&ins).map(read).collect::<Result<Vec<_>, _>>()?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        // A kernel that goes wrong ends its step, not the device.
        let made = catch_unwind(AssertUnwindSafe(|| evaluate_node(Op::eval, node, &inputs)));
        let made = made.map_err(|_| failed("launch", &format!("`{}` panicked", node.name())))?;
        for (tensor, operand) in made.map_err(|e| failed("launch", &e))?.iter().zip(&outs) {
            let bytes = tensor.memory();
            memory.write(operand.at, bytes.len() as u64)?.copy_from_slice(&bytes);
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
        let bytes = memory.read(operand.at, ty.storage_bytes(dims) as u64)?;
        let shape = || ty.shape.iter().map(|d| d.get(dims)).collect::<Vec<usize>>();
        Ok(match (ty.activation_format, ty.dtype) {
            (Some(layout), _) => Tensor::quantized(layout, shape(), bytes.to_vec()),
            (None, DType::Stored(format)) if weight => Tensor::stored(format, shape(), bytes.to_vec()),
            _ => Tensor::from_memory(&ty, dims, bytes),
        })
    }
}

fn number(arg: Option<&KernelArg>) -> Result<u32, DriverError> {
    match arg {
        Some(&KernelArg::U32(number)) => Ok(number),
        _ => Err(failed("launch", &"a number is missing")),
    }
}

fn failed(call: &'static str, why: &dyn std::fmt::Display) -> DriverError {
    DriverError::Failed { call, why: why.to_string() }
}
