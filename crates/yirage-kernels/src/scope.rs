//! A kernel being written for a node: its buffers follow from the values that it touches.

use crate::elements::Elements;
use crate::node_kernel::{BufferSource, NodeKernel, Operand};
use std::ops::Range;
use yirage_hal::driver::GridExtent;
use yirage_ir::{Dim, Dims, Graph, Sym, ValueSource};
use yirage_kir::{BufferAccess, BufferOwnership, KernelMemory, KernelWriter, Register, ScalarType};

/// A kernel being written.
pub(crate) struct KernelScope<'a> {
    graph: &'a Graph,
    pub(crate) w: KernelWriter,
    buffers: Vec<(BufferSource, KernelMemory)>,
}

impl<'a> KernelScope<'a> {
    /// A kernel of groups of so many threads for a node of `graph`.
    pub(crate) fn new(graph: &'a Graph, name: &str, threads: u32) -> KernelScope<'a> {
        KernelScope { graph, w: KernelWriter::new(name, threads), buffers: Vec::new() }
    }

    /// The elements of an operand that is read.
    pub(crate) fn read(&mut self, operand: Operand) -> Elements {
        self.operand(operand, BufferAccess::Read)
    }

    /// The elements of a weight's rows, which are a part of it that is bound by itself. A row is one along its first dimension.
    pub(crate) fn read_rows(&mut self, weight: Operand, rows: Range<u32>) -> Elements {
        let Operand::Value(value) = weight else { return self.read(weight) };
        let ty = self.graph.ty(value).dense();
        let all = ty.shape.first().and_then(|dim| dim.as_const()).map_or(0, |rows| rows as u64);
        if rows.start == 0 && u64::from(rows.end) >= all {
            return self.read(weight);
        }
        let row_bytes = ty.storage_bytes(&Dims::default()) as u64 / all;
        let [offset, bytes] = [rows.start, rows.end - rows.start].map(|rows| u64::from(rows) * row_bytes);
        let source = BufferSource::Part { value, offset, bytes };
        let memory = self.buffer(source, BufferAccess::Read, BufferOwnership::Own);
        Elements { memory, dtype: ty.dtype, first_word: 0 }
    }

    /// The elements of an operand that is written.
    pub(crate) fn write(&mut self, operand: Operand) -> Elements {
        self.operand(operand, BufferAccess::Write)
    }

    /// The elements of an operand that is read and written.
    pub(crate) fn update(&mut self, operand: Operand) -> Elements {
        self.operand(operand, BufferAccess::ReadWrite)
    }

    fn operand(&mut self, operand: Operand, access: BufferAccess) -> Elements {
        match operand {
            Operand::Value(value) => {
                let dtype = self.graph.ty(value).dtype;
                let value = self.graph.kv_cache_of(value).unwrap_or(value);
                // What nodes make lies in the arena, a buffer of all of them.
                let ownership = match self.graph.value(value).source {
                    ValueSource::Node { .. } => BufferOwnership::Pooled,
                    _ => BufferOwnership::Own,
                };
                Elements { memory: self.buffer(BufferSource::Value(value), access, ownership), dtype, first_word: 0 }
            }
            Operand::Temporary { first_word, dtype } => Elements { memory: self.workspace(), dtype, first_word },
        }
    }

    /// The words of the node's workspace.
    pub(crate) fn workspace(&mut self) -> KernelMemory {
        self.buffer(BufferSource::Workspace, BufferAccess::ReadWrite, BufferOwnership::Own)
    }

    fn buffer(&mut self, source: BufferSource, access: BufferAccess, ownership: BufferOwnership) -> KernelMemory {
        if let Some((_, memory)) = self.buffers.iter().find(|(known, _)| *known == source) {
            let memory = *memory;
            self.w.touch(memory, access);
            return memory;
        }
        let name = match source {
            BufferSource::Sizes => "sizes".to_string(),
            BufferSource::Value(_) | BufferSource::Part { .. } => format!("x{}", self.buffers.len()),
            BufferSource::Workspace => "workspace".to_string(),
        };
        let memory = self.w.buffer(name, ScalarType::U32, access, ownership);
        self.buffers.push((source, memory));
        memory
    }

    /// A size: a constant, or what this step has.
    pub(crate) fn size(&mut self, dim: Dim) -> Register {
        match dim {
            Dim::Const(n) => self.w.u32(n),
            Dim::Sym(sym) => {
                let memory = self.buffer(BufferSource::Sizes, BufferAccess::Read, BufferOwnership::Own);
                let at = Sym::ALL.iter().position(|&s| s == sym).map_or(0, |at| at as u32);
                let at = self.w.u32(at);
                self.w.load(memory, at)
            }
        }
    }

    /// The kernel, with the grid that it is launched by and the workspace of its node.
    pub(crate) fn finish(self, grid: [GridExtent; 3], workspace: u64) -> NodeKernel {
        let sources: Vec<BufferSource> = self.buffers.into_iter().map(|(source, _)| source).collect();
        // A launch binds the workspace last.
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|&at| sources[at] == BufferSource::Workspace);
        let kernel = self.w.finish().with_buffer_order(&order);
        let sources = order.into_iter().map(|at| sources[at]).collect();
        NodeKernel { kernel, native: None, sources, workspace, grid }
    }
}
