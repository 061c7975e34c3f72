//! Pieces of a sub-graph: operations of graphs that stand together are one graph, and whatever else there is ends it.

use super::subgraph::{SubgraphStep, SubgraphWork};
use crate::failure::PyOutcome;
use pyo3::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use yirage_graph::KernelGraph;
use yirage_ir::{Dim, Dims, Type};
use yirage_plancache::BoundGraph;

/// Steps that run together: operations of graphs, or one step of another kind.
pub(super) struct FusionGroup<'a> {
    pub(super) steps: &'a [SubgraphStep],
    /// Names of the values that it reads and others made, in the order in which they are first read.
    pub(super) reads: Vec<&'a str>,
    /// Names of the values that it makes and others read.
    pub(super) gives: Vec<&'a str>,
}

/// The pieces of a sub-graph that gives `outputs` back.
pub(super) fn fusion_groups<'a>(steps: &'a [SubgraphStep], outputs: &'a [String]) -> Vec<FusionGroup<'a>> {
    let operation = |step: &SubgraphStep| matches!(step.work, SubgraphWork::Operation { .. });
    let mut wanted: HashSet<&str> = outputs.iter().map(String::as_str).collect();
    let mut found: Vec<FusionGroup<'_>> = Vec::new();
    // From the end, so that it is known what is read behind each.
    for steps in steps.chunk_by(|a, b| operation(a) && operation(b)).rev() {
        let made = || steps.iter().flat_map(|step| step.outputs.iter().map(String::as_str));
        let gives = made().filter(|name| wanted.contains(name)).collect();
        let (mut reads, mut seen): (Vec<&str>, HashSet<&str>) = (Vec::new(), made().collect());
        let all = steps.iter().flat_map(|step| step.inputs.iter().map(String::as_str));
        reads.extend(all.filter(|&name| seen.insert(name)));
        wanted.extend(&reads);
        found.push(FusionGroup { steps, reads, gives });
    }
    found.reverse();
    found
}

/// Where a value that a piece gives is found after its run.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResultSource {
    /// What it was given.
    Read(usize),
    /// Among its results.
    Result(usize),
}

/// A piece of operations as a graph.
pub(super) struct CompiledGroup {
    /// None where all that it gives it was given.
    pub(super) graph: Option<Arc<BoundGraph>>,
    pub(super) sources: Vec<ResultSource>,
}

impl FusionGroup<'_> {
    /// What its graph depends on, as text.
    pub(super) fn key(&self, py: Python<'_>, types: &[&Type]) -> PyOutcome<String> {
        let mut key = format!("{:?} {:?} {types:?}", self.reads, self.gives);
        for step in self.steps {
            key += &format!(" {:?} {:?} {:?} {:?}", step.op, step.inputs, step.outputs, step.attributes(py)?);
        }
        Ok(key)
    }

    /// Its graph for inputs of these types.
    ///
    /// # Errors
    /// What the builder refuses.
    pub(super) fn compiled(&self, py: Python<'_>, types: &[&Type]) -> PyOutcome<CompiledGroup> {
        let mut builder = KernelGraph::new("subgraph");
        let mut values = HashMap::new();
        for (&name, ty) in self.reads.iter().zip(types) {
            let dims: Vec<u32> = ty.shape.iter().map(|dim: &Dim| dim.get(&Dims::default()) as u32).collect();
            values.insert(name, builder.new_input(&dims, ty.strides.as_deref(), ty.dtype)?);
        }
        let given: Vec<_> = self.reads.iter().map(|name| values[name]).collect();
        for step in self.steps {
            let ins: Vec<_> = step.inputs.iter().map(|name| values[name.as_str()]).collect();
            let made = builder.named_op(&step.op, &ins, &step.attributes(py)?)?;
            step.check_count(made.len())?;
            values.extend(step.outputs.iter().map(String::as_str).zip(made));
        }
        let mut marked = Vec::new();
        let mut places = Vec::new();
        for name in &self.gives {
            let id = values[name];
            places.push(match given.iter().position(|&other| other == id) {
                Some(at) => ResultSource::Read(at),
                None => ResultSource::Result(marked.iter().position(|&other| other == id).unwrap_or_else(|| {
                    marked.push(id);
                    marked.len() - 1
                })),
            });
        }
        for &id in &marked {
            builder.mark_output(id, None)?;
        }
        let graph = if marked.is_empty() { None } else { Some(BoundGraph::new(builder.finish()?, Vec::new())?) };
        Ok(CompiledGroup { graph: graph.map(Arc::new), sources: places })
    }
}
