//! Ops: for each, what its kernels take and how they are written. The table below is the only place that names them all.

mod attention;
mod chain;
mod chosen_expert;
mod concat;
mod contract;
mod embed;
mod expert_bias;
mod expert_linear;
mod expert_sum;
mod fill;
mod gather;
mod general;
mod inner;
mod iota;
mod kv_append;
mod linear;
mod output_words;
mod placed_chain;
mod recurrent;
mod reduce;
mod route;
mod row_group;
mod row_prefix;
mod rows;
mod sample;
#[cfg(test)]
mod tests;
mod tiled;
mod top_k;
mod weight_matmul;

use crate::native::{NativeAttention, NativeProducts};
use crate::node_kernel::{NodeKernel, Operand};
use crate::scope::KernelScope;
use crate::workspace::Workspace;
use placed_chain::PlacedChain;
use yirage_hal::HalError;
use yirage_ir::op::OpVariant;
use yirage_ir::{DType, Dims, Format, Graph, Node, NodeKind, RegionKind, Strided, Type, ValueSource};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{DeviceLimits, ValueParts, WeightLayout};

/// The kernels of an op.
pub(crate) struct OpKernels {
    /// The op's name.
    pub(crate) op: &'static str,
    /// What they may be given.
    pub(crate) rules: fn() -> Vec<OpRule>,
    /// Writes them for a node.
    pub(crate) lower: fn(&NodeView<'_>) -> Result<Vec<NodeKernel>, HalError>,
}

/// Ops with kernels of their own, beside those that chains and general forms run.
const OPS: &[OpKernels] = &[
    attention::KERNELS,
    recurrent::CAUSAL_CONV1D,
    concat::KERNELS,
    embed::KERNELS,
    expert_bias::KERNELS,
    expert_linear::KERNELS,
    expert_sum::KERNELS,
    fill::KERNELS,
    recurrent::GATED_DELTA,
    gather::KERNELS,
    iota::KERNELS,
    kv_append::KERNELS,
    linear::KERNELS,
    route::KERNELS,
    sample::KERNELS,
    recurrent::SSM_SCAN,
    top_k::KERNELS,
];

/// Ops that are chains by themselves.
const CHAINS: &[&str] = &["map", "view", "reduce", "contract"];

/// What the kernels of this crate may be given.
pub(crate) fn rules() -> Vec<OpRule> {
    let general = CHAINS.iter().chain(general::OPS).map(|op| OpRule::new(op, vec![plain_operands()]));
    OPS.iter().flat_map(|kernels| (kernels.rules)()).chain(general).collect()
}

/// Plain elements, wherever they lie.
pub(crate) fn plain_operands() -> Vec<OperandConstraint> {
    let floats = [Format::F32, Format::F16, Format::BF16].map(DType::from);
    let plain = || floats.into_iter().chain([DType::I32, DType::U32, DType::Bool]);
    vec![
        OperandConstraint::new(OperandKind::Arena, plain()),
        OperandConstraint::new(OperandKind::StepInput, plain()).with_strides(),
        OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), floats),
    ]
}

/// Floats that are computed or given.
pub(crate) fn float_operands() -> Vec<OperandConstraint> {
    let floats = [Format::F32, Format::F16, Format::BF16].map(DType::from);
    vec![OperandConstraint::new(OperandKind::Arena, floats), OperandConstraint::new(OperandKind::StepInput, floats)]
}

/// Whole numbers that are computed or given.
pub(crate) fn integer_operands() -> Vec<OperandConstraint> {
    [OperandKind::Arena, OperandKind::StepInput].map(|kind| OperandConstraint::new(kind, [DType::I32])).into()
}

/// Weights of every stored format.
pub(crate) fn stored_weights() -> Vec<OperandConstraint> {
    vec![OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), Format::ALL.iter().copied())]
}

/// The same by kernels that are launched once for each part of one that is larger than a binding.
pub(crate) fn weights_in_parts() -> Vec<OperandConstraint> {
    stored_weights().into_iter().map(OperandConstraint::with_parts).collect()
}

/// A node to write kernels for.
#[derive(Clone)]
pub(crate) struct NodeView<'a> {
    /// The plan that it is a node of.
    pub(crate) site: PlanSite<'a>,
    /// The graph that the node is in: the same, or the general form of one of its nodes.
    pub(crate) graph: &'a Graph,
    /// The node.
    pub(crate) node: &'a Node,
    /// Where its inputs lie.
    pub(crate) ins: Vec<Operand>,
    /// Where its outputs go.
    pub(crate) outs: Vec<Operand>,
    /// What of the node's workspace is taken: kernels take what they want behind it.
    pub(crate) workspace: Workspace,
}

/// What all kernels of a plan are written for.
#[derive(Clone, Copy)]
pub(crate) struct PlanSite<'a> {
    /// The graph that the plan runs.
    pub(crate) graph: &'a Graph,
    /// The plan's largest sizes.
    pub(crate) bucket: Dims,
    /// What bounds the device that runs them.
    pub(crate) limits: &'a DeviceLimits,
    /// What makes products with weights in the vendor's language, where the node is run by such kernels.
    pub(crate) products: Option<&'a dyn NativeProducts>,
    /// What makes attention in the vendor's language, where the node is run by such a kernel.
    pub(crate) attention: Option<&'a dyn NativeAttention>,
}

impl<'a> PlanSite<'a> {
    /// A kernel of groups of so many threads, to be written for it.
    pub(crate) fn scope(&self, name: &str, threads: u32) -> KernelScope<'a> {
        KernelScope::new(self.graph, name, threads)
    }

    /// The parts in which weights are bound that are read together.
    pub(crate) fn parts(&self, weights: &[&Type]) -> Result<ValueParts, HalError> {
        ValueParts::of(weights, self.limits)
            .map_err(|why| HalError::Load(format!("a weight larger than a binding: {why}")))
    }
}

impl<'a> NodeView<'a> {
    /// A kernel of groups of so many threads, to be written for it.
    pub(crate) fn scope(&self, name: &str, threads: u32) -> KernelScope<'a> {
        self.site.scope(name, threads)
    }

    /// The op, of this kind.
    pub(crate) fn op<T: OpVariant>(&self) -> Result<&'a T, HalError> {
        let NodeKind::Op(op) = &self.node.kind else { return Err(self.wrong("a region")) };
        T::of(op).ok_or_else(|| self.wrong("another op"))
    }

    fn wrong(&self, what: &str) -> HalError {
        HalError::Load(format!("kernels of an op were asked for {what}: `{}`", self.node.name()))
    }

    /// Where the elements of an input lie in memory: a weight is dense where a kernel reads it.
    pub(crate) fn places(&self, at: usize) -> Result<Strided, HalError> {
        let ty = self.input(at);
        let weight = self.graph.value(self.node.ins[at]).source == ValueSource::Weight;
        let places = if weight { Strided::dense(&ty.shape) } else { Strided::of(ty) };
        places.ok_or_else(|| HalError::Load(format!("{ty}: only the outermost dimension may be symbolic")))
    }

    /// Where the elements of an output go.
    pub(crate) fn dense_output(&self, at: usize) -> Result<Strided, HalError> {
        let ty = self.output(at);
        Strided::dense(&ty.shape)
            .ok_or_else(|| HalError::Load(format!("{ty}: only the outermost dimension may be symbolic")))
    }

    /// The type of an input.
    pub(crate) fn input(&self, at: usize) -> &'a Type {
        self.graph.ty(self.node.ins[at])
    }

    /// The type of an output.
    pub(crate) fn output(&self, at: usize) -> &'a Type {
        self.graph.ty(self.node.outs[at])
    }
}

/// A part of what runs a node: chains may be joined to their neighbours, other kernels stand by themselves.
#[derive(Clone, Debug)]
pub(crate) enum NodePart {
    /// A chain.
    Chain(Box<PlacedChain>),
    /// A kernel.
    Kernel(Box<NodeKernel>),
}

/// The kernels that run a node of a plan.
///
/// # Errors
/// A node that none of them takes.
pub(crate) fn lower(site: PlanSite<'_>, node: &Node) -> Result<Vec<NodeKernel>, HalError> {
    let [ins, outs] = [&node.ins, &node.outs].map(|ids| ids.iter().map(|&id| Operand::Value(id)).collect());
    let view = NodeView { site, graph: site.graph, node, ins, outs, workspace: Workspace::default() };
    let mut workspace = Workspace::default();
    let parts = parts(&view, &mut workspace)?;
    let mut kernels = rows::joined(&site, parts)?;
    let bytes = workspace.bytes();
    kernels
        .iter_mut()
        .filter(|made| made.workspace == 0 && made.uses_workspace())
        .for_each(|made| made.workspace = bytes);
    Ok(kernels)
}

/// The parts that run a node, one after the other.
fn parts(view: &NodeView<'_>, workspace: &mut Workspace) -> Result<Vec<NodePart>, HalError> {
    let chains = || Ok(PlacedChain::of(view)?.into_iter().map(|chain| NodePart::Chain(Box::new(chain))).collect());
    let kernels = |made: Vec<NodeKernel>| made.into_iter().map(|kernel| NodePart::Kernel(Box::new(kernel))).collect();
    match &view.node.kind {
        NodeKind::Region(region) => match region.kind {
            RegionKind::Chain => chains(),
            RegionKind::Rows => inner::parts_of_graph(view, &region.graph, workspace),
            RegionKind::MatmulGroup => weight_matmul::lower(view).map(kernels),
            RegionKind::Tiled => {
                let made = tiled::lower(&NodeView { workspace: *workspace, ..view.clone() }, region)?;
                made.iter().for_each(|kernel| workspace.cover(kernel.workspace));
                Ok(kernels(made))
            }
        },
        NodeKind::Op(op) => match OPS.iter().find(|kernels| kernels.op == op.name()) {
            Some(own) => {
                let made = (own.lower)(&NodeView { workspace: *workspace, ..view.clone() })?;
                made.iter().for_each(|kernel| workspace.cover(kernel.workspace));
                Ok(kernels(made))
            }
            None if CHAINS.contains(&op.name()) => chains(),
            None => general::parts(view, op, workspace),
        },
    }
}
