//! Caches that are attached, in test mode: what earlier positions have is read from them, and what a pass appends is written
//! into them.
//!
//! As in Mirage's first step, the pages of a request stand behind those of the request before it, as many as its positions
//! take. A cache of `[requests, positions, ..]` is one of a page for each request.

use crate::builder::KernelBuilder;
use crate::elements::KernelDType;
use crate::emit::{EmittedGraph, LayerCache};
use crate::error::PersistentError;
use crate::pass::{PassTokens, TestValues};
use crate::tensor::TensorId;
use std::collections::HashMap;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_hal::{Bindings, Device, Executor};
use yirage_ir::op::KvAppend;
use yirage_ir::{DType, Dim, Dims, Graph, GraphBuilder, Sym, Type, ValueId};

/// Rows that a pass appended to a cache that is attached.
#[derive(Clone, PartialEq, Debug)]
pub struct AppendedRows {
    /// The cache.
    pub cache: TensorId,
    /// Its name.
    pub name: String,
    /// Elements of a position, all heads together.
    pub width: usize,
    /// The place of each position in the cache, counted in positions from its first page on.
    pub places: Vec<usize>,
    /// The elements, position by position.
    pub values: Vec<f32>,
}

/// How a cache is laid out.
struct LayerCacheLayout {
    /// Elements of a position.
    width: usize,
    /// The place of each request's first position.
    starts: Vec<usize>,
}

impl KernelBuilder {
    /// What a pass appended to the caches that are attached.
    pub(crate) fn appended(
        &self,
        emitted: &EmittedGraph,
        computed: &HashMap<ValueId, TestValues>,
        pass: &PassTokens,
    ) -> Result<Vec<AppendedRows>, PersistentError> {
        let mut all = Vec::new();
        for part in emitted.caches.iter().flat_map(|cache| &cache.parts) {
            let value = part.appended.and_then(|value| computed.get(&value));
            let Some(TestValues::Floats(values)) = value else { continue };
            let LayerCacheLayout { width, starts } = self.layout(part.tensor, pass)?;
            let places = pass.each().map(|(seq, position)| starts[seq] + position).collect();
            let name = self.of(part.tensor)?.name.clone();
            all.push(AppendedRows { cache: part.tensor, name, width, places, values: values.clone() });
        }
        Ok(all)
    }

    /// Brings what the caches that are attached have of positions before the pass into the states of a device.
    pub(crate) fn fill_caches(
        &self,
        emitted: &EmittedGraph,
        pass: &PassTokens,
        device: &dyn Device,
        bindings: &Bindings,
    ) -> Result<(), PersistentError> {
        for cache in &emitted.caches {
            // The pages are counted for all, so that what does not fit is told before anything runs.
            for part in cache.parts.iter().filter(|part| part.appended.is_some()) {
                self.layout(part.tensor, pass)?;
            }
        }
        let earlier = pass.earlier().count();
        if earlier == 0 {
            return Ok(());
        }
        for cache in &emitted.caches {
            let rows: Vec<Vec<f32>> =
                cache.parts.iter().map(|part| self.earlier_rows(part.tensor, pass)).collect::<Result<_, _>>()?;
            let widths: Vec<u32> = rows.iter().map(|rows| (rows.len() / earlier) as u32).collect();
            let (graph, dims) = (filling(cache, &widths)?, Dims { tokens: earlier as u32, ..pass.dims });
            let target = device.target();
            let weights = plan_weights(&graph, &target)?;
            let plan = compile(&graph, dims, &target, &weights, &CompileOptions::new(self.declared.config.precision))?;
            let mut executor = Executor::new(device, &plan, bindings)?;
            rows.into_iter().enumerate().for_each(|(at, rows)| executor.set_floats(&rows_name(at), rows));
            executor.set("slots", pass.earlier().map(|(seq, position)| pass.slot(seq, position)));
            executor.run(&dims)?;
        }
        Ok(())
    }

    /// What a cache has of the positions before the pass, request by request.
    fn earlier_rows(&self, cache: TensorId, pass: &PassTokens) -> Result<Vec<f32>, PersistentError> {
        let of = self.of(cache)?;
        let wrong = |why: &str| PersistentError::Tensor { name: of.name.clone(), why: why.into() };
        let Some(data) = &of.tensor.data else {
            let why = "`step` says that the pass begins behind position 0, and this cache has no elements: attach an array \
                       that has those of earlier positions";
            return Err(wrong(why));
        };
        let KernelDType::Floats(format) = of.tensor.elements else { return Err(wrong("a cache of floats is wanted")) };
        let LayerCacheLayout { width, starts } = self.layout(cache, pass)?;
        let bytes = format.info().row_bytes(1) * width;
        let mut rows = vec![0f32; pass.earlier().count() * width];
        for (row, (seq, position)) in rows.chunks_exact_mut(width).zip(pass.earlier()) {
            (format.info().decode)(&data[(starts[seq] + position) * bytes..][..bytes], row);
        }
        Ok(rows)
    }

    fn layout(&self, cache: TensorId, pass: &PassTokens) -> Result<LayerCacheLayout, PersistentError> {
        let of = self.of(cache)?;
        let (&[pages, size], heads) = of.tensor.dims.split_first_chunk::<2>().unwrap_or((&[0, 0], &[]));
        let width = heads.iter().map(|&n| n as usize).product();
        let (mut starts, mut used) = (Vec::new(), 0);
        for end in pass.ends() {
            starts.push(used * size as usize);
            used += end.div_ceil(size.max(1) as usize);
        }
        if used > pages as usize {
            let why = format!(
                "it has {pages} pages of {size} positions, and the requests of the pass take {used}, one behind the other: \
                 attach a cache of as many"
            );
            return Err(PersistentError::Tensor { name: of.name.clone(), why });
        }
        Ok(LayerCacheLayout { width, starts })
    }
}

fn rows_name(at: usize) -> String {
    format!("rows.{at}")
}

/// A graph that appends rows of these widths to the state of a cache.
fn filling(cache: &LayerCache, widths: &[u32]) -> Result<Graph, PersistentError> {
    let mut b = GraphBuilder::new("earlier");
    let mut ins = vec![b.kv_cache(&cache.state, cache.block.clone())?];
    for (at, &width) in widths.iter().enumerate() {
        ins.push(b.step_input(&rows_name(at), Type::new(DType::F32, [Dim::Sym(Sym::Tokens), Dim::Const(width)]))?);
    }
    ins.push(b.step_input("slots", Type::new(DType::I32, [Sym::Tokens]))?);
    let filled = b.op("filled", KvAppend { kv_heads: cache.kv_heads }, &ins)?;
    b.output(filled);
    Ok(b.finish())
}
