//! The compiler: (graph, target) to weight plan, and (graph, bucket, target, weight plan) to plan.
//!
//! Both are pure functions with byte-identical output for identical input. The pipeline below reads as a table of
//! contents. This crate sees facts about devices ([`yirage_plan::Target`]), never a device, a request or a file.
#![forbid(unsafe_code)]

mod activation_type;
mod attention;
mod canonicalise;
mod chains;
mod compose;
mod copies;
mod decision;
mod epilogue;
mod error;
mod fuse;
mod group;
mod legalise;
mod memory;
mod names;
mod options;
mod ranks;
mod readers;
mod rebuild;
mod recognise;
mod select;
mod tasks;
pub mod terms;
mod tiles;
mod weights;

pub use decision::{Decision, Decisions, PassDecisions, PassVerdict};
pub use error::CompileError;
pub use options::CompileOptions;
pub use recognise::recognised;
pub use weights::plan_weights;

use yirage_ir::{Dims, Graph, ValueId, ValueSource};
use yirage_plan::{Plan, Target, VerifiedPlan, WeightPlan};

/// A pass from graph to graph.
pub struct GraphPass {
    /// Its name, as filetests call it.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&Graph, &Target, &CompileOptions, &mut Decisions) -> Result<Graph, CompileError>,
}

/// The graph passes, in order.
pub const PIPELINE: &[GraphPass] = &[
    GraphPass { name: "recognise", run: recognise::run },
    GraphPass { name: "canonicalise", run: canonicalise::run },
    GraphPass { name: "ranks", run: ranks::run },
    GraphPass { name: "activation_type", run: activation_type::run },
    GraphPass { name: "legalise", run: legalise::run },
    GraphPass { name: "attention", run: attention::run },
    GraphPass { name: "compose", run: compose::run },
    GraphPass { name: "chains", run: chains::run },
    GraphPass { name: "tiles", run: tiles::run },
    GraphPass { name: "fuse", run: fuse::run },
];

/// The version of what plans are made of: passes, choice of kernels, places and task programs. It is raised with each change
/// that makes another plan of the same graph, so that kept plans are those that would be made now.
pub const VERSION: u32 = 5;

/// The largest sizes a plan is made for.
pub type ShapeBucket = Dims;

/// Compiles `graph` for the sizes of `bucket` on `target`, with weights laid out as `weights` says.
///
/// # Errors
/// What no kernel of the target runs, sizes that no memory has, and what else a plan cannot be made of.
pub fn compile(
    graph: &Graph,
    bucket: ShapeBucket,
    target: &Target,
    weights: &WeightPlan,
    options: &CompileOptions,
) -> Result<VerifiedPlan, CompileError> {
    compiled(graph, bucket, target, weights, options, None)
}

/// As [`compile`], and tells what each pass decided. Where it fails, `told` has what was decided until then.
///
/// # Errors
/// As [`compile`].
pub fn compile_explained(
    graph: &Graph,
    bucket: ShapeBucket,
    target: &Target,
    weights: &WeightPlan,
    options: &CompileOptions,
    told: &mut Vec<PassDecisions>,
) -> Result<VerifiedPlan, CompileError> {
    compiled(graph, bucket, target, weights, options, Some(told))
}

fn compiled(
    graph: &Graph,
    bucket: ShapeBucket,
    target: &Target,
    weights: &WeightPlan,
    options: &CompileOptions,
    mut told: Option<&mut Vec<PassDecisions>>,
) -> Result<VerifiedPlan, CompileError> {
    yirage_ir::verify(graph)?;
    check_strides(graph)?;
    check_kv_caches(graph, target)?;
    weights::check(graph, weights)?;
    let mut lowered = graph.clone();
    for pass in PIPELINE {
        lowered = decided(pass.name, &lowered, &mut told, |decisions| {
            let out = (pass.run)(&lowered, target, options, decisions)?;
            let nodes = out.nodes.len();
            Ok((out, nodes))
        })?;
        if cfg!(debug_assertions) {
            yirage_ir::verify(&lowered)?;
        }
    }
    let weights = weights::of_graph(&lowered, weights, target.ranks);
    let lowered = decided("copies", &lowered, &mut told, |decisions| {
        let out = copies::run(&lowered, target, &weights, &bucket, decisions)?;
        let nodes = out.nodes.len();
        Ok((out, nodes))
    })?;
    let (kernels, chosen) = decided("select", &lowered, &mut told, |decisions| {
        Ok((select::run(&lowered, target, &weights, &bucket, decisions)?, lowered.nodes.len()))
    })?;
    let steps = fuse::steps(&lowered, &chosen);
    let mut plan = Plan {
        target: target.describe(),
        precision: options.precision,
        bucket,
        graph: lowered,
        weights,
        kernels,
        arena: 0,
        placements: Vec::new(),
        steps,
        programs: Vec::new(),
    };
    memory::assign_offsets(&mut plan, target)?;
    plan.programs = tasks::programs(&plan, &target.executors, target.queues())?;
    Ok(VerifiedPlan::new(plan, target)?)
}

/// What `run` makes of a graph, with the number of nodes there are then; its decisions go to `told`, if anywhere.
fn decided<T>(
    pass: &'static str,
    graph: &Graph,
    told: &mut Option<&mut Vec<PassDecisions>>,
    run: impl FnOnce(&mut Decisions) -> Result<(T, usize), CompileError>,
) -> Result<T, CompileError> {
    let mut decisions = if told.is_some() { Decisions::heard() } else { Decisions::unheard() };
    let made = run(&mut decisions);
    let before = graph.nodes.len();
    let after = made.as_ref().map_or(before, |(_, nodes)| *nodes);
    if let Some(told) = told {
        told.push(PassDecisions { pass, before, after, decisions: decisions.into_decisions() });
    }
    made.map(|(made, _)| made)
}

/// Caches of keys and values lie in a layout of the target, which says how many positions a block may have.
fn check_kv_caches(graph: &Graph, target: &Target) -> Result<(), CompileError> {
    let lies = |id: &ValueId| target.kv_cache_layout_of(graph.ty(*id)).is_some();
    match graph.inputs_of(ValueSource::KvCache).find(|id| !lies(id)) {
        None => Ok(()),
        Some(id) => {
            let layouts = target.kv_cache_layouts.iter().map(|facts| {
                let formats: Vec<&str> = facts.formats.iter().map(|format| format.info().name).collect();
                format!("{} of {} in blocks of {:?}", facts.layout, formats.join(", "), facts.positions)
            });
            Err(CompileError::Unsupported {
                what: format!("the cache `{}` of blocks of {}", graph.value(id).name, graph.ty(id)),
                why: format!("{} has {}", target.describe(), layouts.collect::<Vec<_>>().join("; ")),
            })
        }
    }
}

/// Weights may be views: loading writes their rows one by one. So may step inputs, which kernels read where they lie, or copy.
fn check_strides(graph: &Graph) -> Result<(), CompileError> {
    match graph.inputs_of(ValueSource::KvCache).find(|&id| graph.ty(id).strides.is_some()) {
        None => Ok(()),
        Some(id) => Err(CompileError::Unsupported {
            what: format!("the strided KV cache `{}` of type {}", graph.value(id).name, graph.ty(id)),
            why: "the blocks of a KV cache lie dense; only step inputs and weights may be views".into(),
        }),
    }
}
