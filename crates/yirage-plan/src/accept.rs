//! Whether a kernel runs a node, by its rules; and of a refusal, what is refused.

use crate::rules::{OpRule, OperandForm, OperandKind};
use crate::target::{KernelFacts, Target};
use crate::value_parts::{NoParts, ValueParts};
use crate::weight_layout::WeightLayout;
use crate::weights::WeightPlan;
use std::collections::{HashMap, HashSet};
use thiserror::Error;
use yirage_ir::region::{RegionGraph, Tiled, block_bytes};
use yirage_ir::{Dims, Graph, Node, NodeKind, Op, Region, ValueId, ValueSource};

/// Why no kernel runs a node.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// No kernel runs such an op.
    #[error("no kernel runs it{0}; the kernels are {1}")]
    Op(String, String),
    /// An op is not as the kernels that run it want it.
    #[error("`{op}` has {got}; {kernel} wants {wanted}")]
    Predicate {
        /// The op.
        op: String,
        /// What it has.
        got: String,
        /// A kernel that runs it.
        kernel: String,
        /// What that kernel wants.
        wanted: String,
    },
    /// A node reads and writes more values than a kernel of the target can be bound to.
    #[error(
        "it is bound to {got} values, the sizes of the step among them; a kernel of the target takes {limit} at most"
    )]
    Bindings {
        /// How many they are.
        got: usize,
        /// How many may be.
        limit: u32,
    },
    /// A value is larger than what a kernel of the target can be bound to.
    #[error("`{name}` takes {got} bytes; a kernel of the target is bound to {limit} at most")]
    BindingBytes {
        /// The value.
        name: String,
        /// Its bytes at the plan's largest sizes; the most there are where that is no number.
        got: u64,
        /// How many may be.
        limit: u64,
    },
    /// A value that a kernel reads in parts has none that are small enough.
    #[error("`{name}` is larger than a kernel of the target is bound to, and read in parts: {why}")]
    Parts {
        /// The value.
        name: String,
        /// Why there are none.
        why: NoParts,
    },
    /// A block of a tiled region takes more memory than the target's blocks have.
    #[error("a block of {grid:?} takes {wanted} bytes, {kernel} has {limit} for one: smaller tiles are wanted")]
    Block {
        /// The grid.
        grid: [u32; 3],
        /// Bytes that a block takes; the most there are where that is no number.
        wanted: u64,
        /// The kernel that runs such regions.
        kernel: String,
        /// Bytes that there are.
        limit: u64,
    },
    /// An input is given in a way that the kernel does not take.
    #[error(transparent)]
    Input(Box<RefusedInput>),
}

/// An input that the kernel that comes closest does not take.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("input {input} of `{op}`, `{name}`, is {given}; {kernel} takes {accepted}")]
pub struct RefusedInput {
    /// The op.
    pub op: String,
    /// Which input.
    pub input: usize,
    /// The value given.
    pub name: String,
    /// How it is given.
    pub given: String,
    /// The kernel.
    pub kernel: String,
    /// What it takes there.
    pub accepted: String,
}

/// Where the values of a graph lie under a weight plan.
pub struct OperandPlacement<'a> {
    graph: &'a Graph,
    layouts: HashMap<&'a str, WeightLayout>,
    target: &'a Target,
    bucket: Dims,
}

impl<'a> OperandPlacement<'a> {
    /// Of `graph` on `target`, in a plan for these largest sizes. A weight without an entry, or of a layout that the target
    /// does not have, lies nowhere.
    pub fn new(graph: &'a Graph, weights: &'a WeightPlan, target: &'a Target, bucket: &Dims) -> OperandPlacement<'a> {
        let layout = |name: &str| target.weight_layout(name).map(|facts| facts.layout);
        let entries = weights.entries.iter().filter_map(|e| Some((e.name.as_str(), layout(&e.layout)?)));
        OperandPlacement { graph, layouts: entries.collect(), target, bucket: *bucket }
    }

    /// Where a value lies.
    fn kind(&self, id: ValueId) -> Option<OperandKind> {
        if self.graph.kv_cache_of(id).is_some() {
            return self.target.kv_cache_layout_of(self.graph.ty(id)).map(OperandKind::KvCache);
        }
        let v = self.graph.value(id);
        match v.source {
            ValueSource::StepInput => Some(OperandKind::StepInput),
            ValueSource::Weight => self.layouts.get(v.name.as_str()).copied().map(OperandKind::Weight),
            ValueSource::KvCache => self.target.kv_cache_layout_of(&v.ty).map(OperandKind::KvCache),
            ValueSource::Node { .. } => Some(OperandKind::Arena),
        }
    }

    /// Whether a kernel of the target can be bound to all that a node touches.
    fn check_bindings(&self, kernel: &KernelFacts, node: &Node) -> Result<(), Refusal> {
        let limits = &self.target.limits;
        let touched = || node.ins.iter().chain(&node.outs).map(|&id| self.graph.kv_cache_of(id).unwrap_or(id));
        if let Some(limit) = limits.bindings {
            let got = 1 + touched().collect::<HashSet<_>>().len();
            if got > limit as usize {
                return Err(Refusal::Bindings { got, limit });
            }
        }
        let Some(limit) = limits.binding_bytes else { return Ok(()) };
        // What a step or a cache takes is known when it is bound: the largest step of a plan may be one that never comes.
        let fixed = |&id: &ValueId| self.graph.value(id).source != ValueSource::KvCache && self.graph.ty(id).is_fixed();
        for id in touched().filter(fixed) {
            let got = self.target.storage_bytes(self.graph.ty(id), &self.bucket).unwrap_or(u64::MAX);
            if got <= limit {
                continue;
            }
            let name = self.graph.value(id).name.clone();
            if !kernel.reads_in_parts(self, node, id) {
                return Err(Refusal::BindingBytes { name, got, limit });
            }
            ValueParts::of(&[self.graph.ty(id)], limits).map_err(|why| Refusal::Parts { name, why })?;
        }
        Ok(())
    }

    /// Where a value of a graph of the region of `node` lies.
    fn inner_kind(&self, node: &Node, part: &RegionGraph<'_>, id: ValueId) -> Option<OperandKind> {
        let id = part.graph.kv_cache_of(id).unwrap_or(id);
        let at = part.graph.inputs.iter().position(|&i| i == id);
        match at.and_then(|at| part.ins.get(at).copied().flatten()) {
            Some(at) => self.kind(node.ins[at]),
            None => Some(OperandKind::Arena),
        }
    }
}

/// The kernel of `target` that runs a node: the first that does.
///
/// # Errors
/// Of the kernel that comes closest, the first input that it does not take.
pub fn select_kernel(target: &Target, lying: &OperandPlacement<'_>, node: &Node) -> Result<usize, Refusal> {
    let mut closest: Option<Near> = None;
    for (k, kernel) in target.kernels.iter().enumerate() {
        let Err(near) = kernel.runs(lying, node) else { return Ok(k) };
        if closest.as_ref().is_none_or(|c| near.taken > c.taken) {
            closest = Some(near);
        }
    }
    let names = || target.kernels.iter().map(|facts| facts.kernel.name.as_str()).collect::<Vec<_>>().join(", ");
    Err(match closest {
        Some(Near { why: Some(why), .. }) => why,
        _ => Refusal::Op(inner_names(node), names()),
    })
}

/// Of the kernels that a target wants more than kernel `chosen`, what those that run such a node refuse of this one.
pub fn passed_over(target: &Target, lying: &OperandPlacement<'_>, node: &Node, chosen: usize) -> Vec<Refusal> {
    let wanted = target.kernels.iter().take(chosen);
    wanted.filter_map(|kernel| kernel.runs(lying, node).err()?.why).collect()
}

/// The ops of a region, for people.
fn inner_names(node: &Node) -> String {
    match &node.kind {
        NodeKind::Op(_) => String::new(),
        NodeKind::Region(r) => {
            let mut names: Vec<&str> = r.ops().map(Op::name).collect();
            names.dedup();
            format!(" with {}", names.join(", "))
        }
    }
}

/// How input `at` of an op is given; none where it lies nowhere.
fn operand_form(
    op: &Op,
    graph: &Graph,
    at: usize,
    id: ValueId,
    kind: &dyn Fn(ValueId) -> Option<OperandKind>,
) -> Option<OperandForm> {
    let ty = graph.ty(id);
    kind(id).map(|kind| OperandForm {
        kind,
        dtype: ty.dtype,
        activation_format: ty.activation_format,
        whole: op.whole(at, ty),
        strided: ty.strides.is_some() && !matches!(kind, OperandKind::Weight(_)),
    })
}

/// A refusal, and how much was taken before it.
struct Near {
    taken: usize,
    why: Option<Refusal>,
}

impl KernelFacts {
    /// Whether the kernel runs a node.
    ///
    /// # Errors
    /// What it does not take.
    pub(crate) fn check(&self, lying: &OperandPlacement<'_>, node: &Node) -> Result<(), String> {
        self.runs(lying, node).map_err(|near| match near.why {
            Some(why) => why.to_string(),
            None => format!("{} does not run `{}`", self.kernel.name, node.name()),
        })
    }

    fn runs(&self, lying: &OperandPlacement<'_>, node: &Node) -> Result<(), Near> {
        let taken = match &node.kind {
            NodeKind::Op(op) => self.op(op, lying, lying.graph, node, 0, &|id| lying.kind(id)).map(|()| node.ins.len()),
            NodeKind::Region(region) => self.region(lying, node, region),
        }?;
        lying.check_bindings(self, node).map_err(|why| Near { taken, why: Some(why) })
    }

    /// Whether the kernel reads a value of a node that it runs in parts, wherever it reads it. A block of a tiled region does not.
    fn reads_in_parts(&self, lying: &OperandPlacement<'_>, node: &Node, id: ValueId) -> bool {
        if node.outs.contains(&id) {
            return false;
        }
        match &node.kind {
            NodeKind::Op(op) => self.op_reads_in_parts(op, (lying.graph, lying.bucket), node, id, &|id| lying.kind(id)),
            NodeKind::Region(region) if region.tiled.is_some() => false,
            NodeKind::Region(region) => region.parts().iter().all(|part| {
                let kind = |id: ValueId| lying.inner_kind(node, part, id);
                let is_it = |&(at, _): &(&Option<usize>, &ValueId)| at.is_some_and(|at| node.ins[at] == id);
                let inner = part.ins.iter().zip(&part.graph.inputs).filter(is_it).map(|(_, &inner)| inner);
                let reads = |(inner, reader): (ValueId, &Node)| match &reader.kind {
                    NodeKind::Op(op) => self.op_reads_in_parts(op, (part.graph, lying.bucket), reader, inner, &kind),
                    NodeKind::Region(_) => !reader.ins.contains(&inner),
                };
                inner.flat_map(|inner| part.graph.nodes.iter().map(move |reader| (inner, reader))).all(reads)
            }),
        }
    }

    /// Whether an op reads a value in parts at each of its inputs that is this one.
    fn op_reads_in_parts(
        &self,
        op: &Op,
        site: (&Graph, Dims),
        node: &Node,
        id: ValueId,
        kind: &dyn Fn(ValueId) -> Option<OperandKind>,
    ) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.op == op.name());
        let rule = rules.find(|rule| self.rule(rule, op, site, node, kind).is_ok());
        let in_parts = |at: usize| {
            let given = operand_form(op, site.0, at, id, kind);
            let mut ways = rule.into_iter().flat_map(|rule| rule.constraints(at));
            given.is_some_and(|given| ways.any(|way| way.in_parts && way.accepts(&given)))
        };
        node.ins.iter().enumerate().filter(|&(_, &read)| read == id).all(|(at, _)| in_parts(at))
    }

    fn region(&self, lying: &OperandPlacement<'_>, node: &Node, region: &Region) -> Result<usize, Near> {
        if !self.regions.contains(&region.kind) {
            return Err(Near { taken: 0, why: None });
        }
        let mut taken = 0;
        for part in region.parts() {
            taken = self.ops(lying, part.graph, taken, region, &|id| lying.inner_kind(node, &part, id))?;
        }
        if let (Some(tiled), Some(limit)) = (&region.tiled, lying.target.limits.block_bytes) {
            let piece = lying.target.limits.right_side_piece;
            self.fits(region, tiled, limit, piece).map_err(|why| Near { taken, why: Some(why) })?;
        }
        Ok(taken)
    }

    /// Whether the ops of a region's graph are taken; how many are then, with their inputs.
    fn ops(
        &self,
        lying: &OperandPlacement<'_>,
        graph: &Graph,
        mut taken: usize,
        region: &Region,
        kind: &dyn Fn(ValueId) -> Option<OperandKind>,
    ) -> Result<usize, Near> {
        for inner in &graph.nodes {
            match &inner.kind {
                NodeKind::Op(op) => self.op(op, lying, graph, inner, taken, kind)?,
                // A tile's ops may be chains; other regions hold none.
                NodeKind::Region(chain) if region.tiled.is_some() => {
                    let outer = |id: ValueId| chain.graph.inputs.iter().position(|&i| i == id);
                    let kind = |id: ValueId| outer(id).map_or(Some(OperandKind::Arena), |at| kind(inner.ins[at]));
                    taken = self.ops(lying, &chain.graph, taken, chain, &kind)?;
                }
                NodeKind::Region(_) => return Err(Near { taken, why: None }),
            }
            taken += 1 + inner.ins.len();
        }
        Ok(taken)
    }

    /// Whether a block has room.
    fn fits(&self, region: &Region, tiled: &Tiled, limit: u64, piece: Option<u64>) -> Result<(), Refusal> {
        let wanted = block_bytes(&region.graph, tiled, piece).unwrap_or(u64::MAX);
        if wanted <= limit {
            return Ok(());
        }
        Err(Refusal::Block { grid: tiled.grid, wanted, kernel: self.kernel.name.clone(), limit })
    }

    /// Whether one of the rules takes the op; else the refusal of the one that comes closest.
    fn op(
        &self,
        op: &Op,
        lying: &OperandPlacement<'_>,
        graph: &Graph,
        node: &Node,
        before: usize,
        kind: &dyn Fn(ValueId) -> Option<OperandKind>,
    ) -> Result<(), Near> {
        let mut closest = Near { taken: before, why: None };
        for rule in self.rules.iter().filter(|r| r.op == op.name()) {
            let Err((taken, why)) = self.rule(rule, op, (graph, lying.bucket), node, kind) else { return Ok(()) };
            if closest.why.is_none() || before + taken > closest.taken {
                closest = Near { taken: before + taken, why: Some(why) };
            }
        }
        Err(closest)
    }

    /// Whether a rule takes the op; else how much it does take, and what it does not.
    fn rule(
        &self,
        rule: &OpRule,
        op: &Op,
        (graph, bucket): (&Graph, Dims),
        node: &Node,
        kind: &dyn Fn(ValueId) -> Option<OperandKind>,
    ) -> Result<(), (usize, Refusal)> {
        let (op_name, kernel) = (op.name().to_string(), self.kernel.name.clone());
        for wanted in &rule.wants {
            if let Err(got) = wanted.check(op, graph, node, &bucket) {
                return Err((1, Refusal::Predicate { op: op_name, got, kernel, wanted: wanted.to_string() }));
            }
        }
        for (at, &id) in node.ins.iter().enumerate() {
            let given = operand_form(op, graph, at, id, kind);
            if given.is_some_and(|given| rule.constraints(at).iter().any(|way| way.accepts(&given))) {
                continue;
            }
            let accepted: Vec<String> = rule.constraints(at).iter().map(ToString::to_string).collect();
            let refusal = RefusedInput {
                op: op_name,
                input: at,
                name: graph.value(id).name.clone(),
                given: given.map_or("a weight of no layout that the target has".into(), |g| g.to_string()),
                kernel,
                accepted: if accepted.is_empty() { "nothing".into() } else { accepted.join(", or ") },
            };
            return Err((2 + at, Refusal::Input(Box::new(refusal))));
        }
        Ok(())
    }
}
