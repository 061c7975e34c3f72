//! Where the values of a plan lie, once what it names is bound.

use super::arena_slice::ArenaSlice;
use super::group::{self, GroupAllocation};
use super::location::{OperandLocation, PlanOperand};
use super::scratch::{ScratchBuffer, ScratchSizes};
use super::site::{QuantizedReaders, Site};
use super::viewed::Whole;
use crate::attention_plans::AttentionPlans;
use crate::shared::CpuContext;
use crate::storage::{CpuKvCache, CpuWeight};
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_cpu_kernels::linear::{Dispatch, MatmulVariant};
use yirage_cpu_kernels::memory::{OutOfMemory, Supply};
use yirage_hal::{Bindings, HalError};
use yirage_ir::region::FusedChain;
use yirage_ir::{DType, Dims, Format, Graph, Node, NodeKind, Op, RegionKind, Type, ValueId};
use yirage_plan::{BufferPlacement, Plan, Precision, ValueLocation};

/// What binding a kernel needs to know, and what it adds to: scratch memory and cuts of batches.
pub(crate) struct Binder<'a> {
    pub(crate) shared: &'a Arc<CpuContext>,
    pub(crate) precision: Precision,
    /// How products are computed.
    pub(crate) variant: MatmulVariant,
    pub(crate) scratch: ScratchSizes,
    pub(crate) attention_plans: AttentionPlans,
    plan: &'a Plan,
    bindings: &'a Bindings,
    /// How quantised values are read.
    readers: HashMap<ValueId, QuantizedReaders>,
    /// Where placed values lie.
    spots: HashMap<ValueId, ArenaSlice>,
    /// Bytes that each worker needs for what lives only inside passes over rows.
    worker_bytes: usize,
}

/// A place of an output of the plan; none for cache states, which stay where they are.
pub(crate) type BoundOutput = Option<(ArenaSlice, Type)>;

impl<'a> Binder<'a> {
    /// For a verified plan.
    ///
    /// # Errors
    /// A guarded device that has no memory left; choices of the bindings that there are not.
    pub(crate) fn new(
        shared: &'a Arc<CpuContext>,
        plan: &'a Plan,
        bindings: &'a Bindings,
    ) -> Result<Binder<'a>, HalError> {
        let precision = plan.precision;
        let (scratch, cuts) = (ScratchSizes::new(shared.supply), AttentionPlans::default());
        let spot = |place: &BufferPlacement| Ok((place.value, arena_slice(shared.supply, plan, place)?));
        let spots = plan.placements.iter().map(spot).collect::<Result<_, HalError>>()?;
        let variant = shared.parse_variant(bindings.kernel_variant.as_deref())?;
        let pairs = |format| {
            let kernel = Dispatch::new(shared.isa, variant, Precision::Fast, format).ok();
            kernel.filter(|kernel| kernel.reads_pairs(usize::MAX))
        };
        let readers = readers(&plan.graph, pairs);
        Ok(Binder {
            shared,
            plan,
            bindings,
            precision,
            variant,
            scratch,
            attention_plans: cuts,
            readers,
            spots,
            worker_bytes: 0,
        })
    }

    /// The largest sizes of a step.
    pub(crate) fn bucket(&self) -> &Dims {
        &self.plan.bucket
    }

    /// The ops of node `n` with their operands: itself, or those of its region.
    ///
    /// # Errors
    /// A value without a place or a binding, and what is bound to something else than its type says.
    pub(crate) fn sites(&mut self, n: usize) -> Result<Vec<Site>, HalError> {
        let node = &self.plan.graph.nodes[n];
        match &node.kind {
            NodeKind::Op(op) => {
                let operands = |ids: &[ValueId]| ids.iter().map(|&id| self.value(id)).collect::<Result<Vec<_>, _>>();
                let readers = node.outs.iter().find_map(|o| self.readers.get(o)).copied().unwrap_or_default();
                Ok(vec![Site { op: op.clone(), ins: operands(&node.ins)?, outs: operands(&node.outs)?, readers }])
            }
            NodeKind::Region(region) => {
                // Passes over rows are made group by group; other regions keep nothing inside.
                let inner = match region.kind {
                    RegionKind::Rows => group::allocate(&region.graph, self.shared.pool.count(), self.shared.supply)?,
                    _ => GroupAllocation::default(),
                };
                self.worker_bytes = self.worker_bytes.max(inner.end);
                let bind = |op: &Node| self.inner_site(&inner, node, &region.graph, op);
                region.graph.nodes.iter().map(bind).collect()
            }
        }
    }

    pub(super) fn node(&self, n: usize) -> &Node {
        &self.plan.graph.nodes[n]
    }

    /// Each worker needs at least so many bytes.
    pub(super) fn need_worker_bytes(&mut self, bytes: usize) {
        self.worker_bytes = self.worker_bytes.max(bytes);
    }

    /// Bytes that each worker needs for what lives only inside passes over rows and tiled regions.
    pub(crate) fn worker_bytes(&self) -> usize {
        self.worker_bytes
    }

    /// Node `n` as a whole.
    ///
    /// # Errors
    /// As [`Binder::sites`].
    pub(crate) fn whole(&self, n: usize) -> Result<Whole, HalError> {
        let node = &self.plan.graph.nodes[n];
        let operands = |ids: &[ValueId]| ids.iter().map(|&id| self.value(id)).collect::<Result<Vec<_>, _>>();
        Ok(Whole {
            name: node.name().into(),
            op: if let NodeKind::Op(op) = &node.kind { Some(op.clone()) } else { None },
            chains: FusedChain::of_node(&self.plan.graph, node),
            ins: operands(&node.ins)?,
            outs: operands(&node.outs)?,
            bucket: self.plan.bucket,
        })
    }

    /// Scratch memory of this many bytes for each worker.
    ///
    /// # Errors
    /// A device that has no memory left.
    pub(crate) fn each_worker(&mut self, bytes: usize) -> Result<Vec<ScratchBuffer>, HalError> {
        (0..self.shared.pool.count()).map(|_| self.scratch.take(bytes)).collect()
    }

    /// Where the plan's outputs lie.
    ///
    /// # Errors
    /// An output that nothing computes.
    pub(crate) fn outputs(&self) -> Result<Vec<BoundOutput>, HalError> {
        let output = |&id: &ValueId| {
            let operand = self.value(id)?;
            match operand.location {
                OperandLocation::Arena(spot) => Ok(Some((spot, operand.ty))),
                OperandLocation::KvCache(_) => Ok(None),
                _ => Err(HalError::Load(format!("the output {operand} is not a computed value"))),
            }
        };
        self.plan.graph.outputs.iter().map(output).collect()
    }

    fn inner_site(&self, inner: &GroupAllocation, outer: &Node, graph: &Graph, node: &Node) -> Result<Site, HalError> {
        let NodeKind::Op(op) = &node.kind else {
            return Err(HalError::Load("this device runs no region inside a region".into()));
        };
        let operands = |ids: &[ValueId]| {
            let of = |&id: &ValueId| self.inner_value(inner, outer, graph, id);
            ids.iter().map(of).collect::<Result<Vec<_>, _>>()
        };
        let leaves = |id: &ValueId| {
            let at = graph.outputs.iter().position(|o| o == id);
            at.and_then(|at| self.readers.get(&outer.outs[at]))
        };
        let readers = node.outs.iter().find_map(leaves).copied().unwrap_or_default();
        Ok(Site { op: op.clone(), ins: operands(&node.ins)?, outs: operands(&node.outs)?, readers })
    }

    fn inner_value(
        &self,
        inner: &GroupAllocation,
        outer: &Node,
        graph: &Graph,
        id: ValueId,
    ) -> Result<PlanOperand, HalError> {
        if let Some(state) = graph.kv_cache_of(id) {
            let at = graph.inputs.iter().position(|&i| i == state);
            let at = at.ok_or_else(|| HalError::Load("a region's state is not its input".into()))?;
            return self.value(outer.ins[at]);
        }
        if let Some(at) = graph.inputs.iter().position(|&i| i == id) {
            return self.value(outer.ins[at]);
        }
        if let Some(at) = graph.outputs.iter().position(|&o| o == id) {
            return Ok(PlanOperand { inner: true, ..self.value(outer.outs[at])? });
        }
        let value = graph.value(id);
        let spot = inner.spots.get(&id);
        let spot = spot.ok_or_else(|| HalError::Load(format!("`{}` of a region has no place", value.name)))?;
        let location = OperandLocation::Group(spot.clone());
        Ok(PlanOperand { name: value.name.clone(), ty: value.ty.clone(), location, inner: true })
    }

    pub(super) fn value(&self, id: ValueId) -> Result<PlanOperand, HalError> {
        let graph = &self.plan.graph;
        let (mut name, mut ty) = (&graph.value(id).name, graph.ty(id).clone());
        let missing = || HalError::Load(format!("`{}` has no place", graph.value(id).name));
        let location = match self.plan.location(id).ok_or_else(missing)? {
            ValueLocation::StepInput(index) => OperandLocation::StepInput(index),
            ValueLocation::Weight => {
                let weight = self.weight(name, &ty)?;
                ty = ty.dense();
                OperandLocation::Weight(weight)
            }
            ValueLocation::KvCache(cache) => {
                name = &graph.value(cache).name;
                OperandLocation::KvCache(self.kv_cache(name)?)
            }
            ValueLocation::Arena(_) => OperandLocation::Arena(self.spots.get(&id).ok_or_else(missing)?.clone()),
        };
        Ok(PlanOperand { name: name.clone(), ty, location, inner: false })
    }

    fn weight(&self, name: &str, ty: &Type) -> Result<Arc<CpuWeight>, HalError> {
        let handle = self.bindings.weights.get(name);
        let handle = handle.ok_or_else(|| HalError::Load(format!("weight `{name}` is not bound")))?;
        let weight = own::<CpuWeight>(&handle.0, "weight", name)?;
        if !weight.holds(ty) {
            return Err(HalError::Load(format!("weight `{name}` is {ty}; what is bound to it is of another size")));
        }
        Ok(weight)
    }

    fn kv_cache(&self, name: &str) -> Result<Arc<CpuKvCache>, HalError> {
        let handle = self.bindings.kv_caches.get(name);
        let handle = handle.ok_or_else(|| HalError::Load(format!("KV cache `{name}` is not bound")))?;
        own::<CpuKvCache>(&handle.0, "KV cache", name)
    }
}

/// Where a placed value lies. Words of their own end where the value does, others where the place does.
fn arena_slice(supply: Supply, plan: &Plan, place: &BufferPlacement) -> Result<ArenaSlice, HalError> {
    let ty = plan.graph.ty(place.value);
    let (bytes, align) = match ty.activation_format {
        Some(_) => (place.bytes as usize, 64),
        None => (ty.bytes(&plan.bucket), align_of::<f32>()),
    };
    let refused = |e: OutOfMemory| HalError::OutOfMemory { pool: "arena", wanted: bytes as u64, detail: e.to_string() };
    ArenaSlice::new(supply, place.offset as usize, bytes, align).map_err(refused)
}

/// What a handle holds, if it is this device's.
fn own<T: Any + Send + Sync>(handle: &Arc<dyn Any + Send + Sync>, what: &str, name: &str) -> Result<Arc<T>, HalError> {
    let foreign = |_| HalError::Load(format!("{what} `{name}` is bound to memory of another device"));
    handle.clone().downcast::<T>().map_err(foreign)
}

/// How the quantised values of a graph are read; `pairs` gives the kernel for weights of a format if it reads pairs.
fn readers(graph: &Graph, pairs: impl Fn(Format) -> Option<Dispatch>) -> HashMap<ValueId, QuantizedReaders> {
    let parts = |op: &Op| match op {
        Op::ExpertLinear(e) => Some(if e.shared { 1 } else { e.top_k as usize }),
        _ => None,
    };
    let of = |node: &Node| match &node.kind {
        NodeKind::Op(op) => parts(op),
        NodeKind::Region(r) => r.graph.nodes.iter().find_map(|n| match &n.kind {
            NodeKind::Op(op) => parts(op),
            NodeKind::Region(_) => None,
        }),
    };
    let weights = |&id: &ValueId| match graph.ty(id).dtype {
        DType::Stored(format) => pairs(format),
        _ => None,
    };
    let mut readers = HashMap::<ValueId, QuantizedReaders>::new();
    for node in &graph.nodes {
        let quantised = node.ins.iter().filter(|&&id| graph.ty(id).activation_format.is_some());
        for &id in quantised {
            let known = readers.entry(id).or_default();
            known.parts = known.parts.or(of(node));
            known.pairs = known.pairs.or_else(|| node.ins.iter().find_map(weights));
        }
    }
    readers
}
