//! The graphs that Mirage's benchmarks time, at their shapes: one file a workload, and one line in [`ALL`].
//!
//! Names and shapes are those of the files in `benchmark/` of mirage-project/mirage (Wu et al., "Mirage: A Multi-Level
//! Superoptimizer for Tensor Programs", OSDI 2025). What a model learns is a weight here, which Mirage does not tell apart
//! from other inputs. No device and no clock is known here.

mod gated_mlp;
mod group_query_attention;
mod lora;
mod moe;
mod multi_head_attention;
mod multi_query_attention;
mod norm_transformer;
mod qknorm_gqa;
mod rmsnorm;
mod unshifted;

use crate::kernel_graph::{GraphError, KernelGraph};
use yirage_ir::{DType, Graph, ValueId};

/// Every workload: Mirage's six, then its others.
pub const ALL: [Workload; 9] = [
    group_query_attention::WORKLOAD,
    qknorm_gqa::WORKLOAD,
    rmsnorm::WORKLOAD,
    lora::WORKLOAD,
    gated_mlp::WORKLOAD,
    norm_transformer::WORKLOAD,
    moe::WORKLOAD,
    multi_head_attention::WORKLOAD,
    multi_query_attention::WORKLOAD,
];

/// A graph that is worth timing.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What Mirage's file is called.
    pub name: &'static str,
    /// What it computes.
    pub about: &'static str,
    build: fn(&mut WorkloadBuilder) -> Result<ValueId, GraphError>,
}

/// What a workload's graph is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// How many times the rows or heads of Mirage's shape for a batch of one.
    pub batch: u32,
    /// The type of all elements: f32, f16 or bf16.
    pub dtype: DType,
    /// The sizes.
    pub scale: Scale,
}

/// How large a workload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// As Mirage's benchmarks have it.
    Mirage,
    /// Of the same structure, and small enough for the reference.
    Small,
}

impl Workload {
    /// The workload called `name`.
    pub fn named(name: &str) -> Option<Workload> {
        ALL.into_iter().find(|w| w.name == name)
    }

    /// Its graph, whose output is `o`.
    ///
    /// # Errors
    /// A batch of none, or one with which a size is no longer below 2^32; another type than f32, f16 and bf16.
    pub fn graph(&self, parameters: Parameters) -> Result<Graph, GraphError> {
        if parameters.batch == 0 {
            let wanted = "a number of at least 1";
            return Err(GraphError::Argument { what: self.name, argument: "batch", given: "0".into(), wanted });
        }
        let mut making = WorkloadBuilder { graph: KernelGraph::new(self.name), parameters };
        let made = (self.build)(&mut making)?;
        making.graph.named_output("o", made, None)?;
        making.graph.finish()
    }
}

/// A workload's graph under construction.
struct WorkloadBuilder {
    graph: KernelGraph,
    parameters: Parameters,
}

impl WorkloadBuilder {
    /// A size as Mirage has it, or its small stand-in.
    fn size(&self, mirage: u32, small: u32) -> u32 {
        match self.parameters.scale {
            Scale::Mirage => mirage,
            Scale::Small => small,
        }
    }

    /// A size that grows with the batch.
    fn batched(&self, of_one: u32) -> Result<u32, GraphError> {
        let batch = self.parameters.batch;
        of_one.checked_mul(batch).ok_or_else(|| GraphError::Argument {
            what: "workload",
            argument: "batch",
            given: batch.to_string(),
            wanted: "one with which every size is below 2^32",
        })
    }

    fn input(&mut self, name: &str, dims: &[u32]) -> Result<ValueId, GraphError> {
        self.graph.named_input(name, dims, None, self.parameters.dtype)
    }

    fn weight(&mut self, name: &str, dims: &[u32]) -> Result<ValueId, GraphError> {
        self.graph.new_weight(name, dims, None, self.parameters.dtype)
    }
}
