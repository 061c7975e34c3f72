//! A graph with its weights, checked and named once.

use crate::array::HostArray;
use crate::call_error::CallError;
use crate::callable::{Callable, ResidentWeights};
use crate::interface::Interface;
use crate::interface_text::interface_hash;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use yirage_compile::CompileError;
use yirage_hal::{Device, KvCacheHandle};
use yirage_ir::{Dim, Dims, Graph, Sym};
use yirage_plan::VerifiedPlan;

/// Weights by name, and where they lie: in the process that is who they are.
pub(crate) type WeightNames = Arc<[(String, u64)]>;

/// What the next graph whose weights lie on the device is called in this process.
static RESIDENT: AtomicU64 = AtomicU64::new(0);

/// What lies on the device for all plans of a graph, and is not the cache's.
#[derive(Clone, Default)]
pub struct ResidentTensors {
    /// Every weight of the graph, as plans for the device want it.
    pub weights: ResidentWeights,
    /// Every cache state of the graph, by name.
    pub kv_caches: HashMap<String, KvCacheHandle>,
}

/// A graph with its weights, checked and hashed once: what a [`PlanCache`](crate::PlanCache) is called with.
///
/// Two of equal graphs share plans where their weights are the same memory: copies of an [`HostArray`] are, an array made again
/// is not. Arrays do not change, so equal memory is equal values.
#[derive(Clone)]
pub struct BoundGraph {
    pub(crate) graph: Arc<Graph>,
    pub(crate) interface: Arc<Interface>,
    pub(crate) hash: u128,
    pub(crate) interface_hash: u128,
    pub(crate) weights: Arc<[(String, HostArray)]>,
    /// The weights by name, and where they lie.
    pub(crate) weight_names: WeightNames,
    pub(crate) resident: Option<Arc<ResidentTensors>>,
    /// Sizes of the symbols that no input has.
    others: Dims,
}

impl fmt::Debug for BoundGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundGraph").field("graph", &self.graph.name).field("weights", &self.weight_names).finish()
    }
}

impl BoundGraph {
    /// A graph with its weights by name.
    ///
    /// # Errors
    /// [`CallError`]: a graph that is not sound or has cache states; a weight that is missing, of another type or not of the
    /// graph.
    pub fn new(graph: Graph, weights: Vec<(String, HostArray)>) -> Result<BoundGraph, CallError> {
        yirage_ir::verify(&graph).map_err(CompileError::from)?;
        let interface = Interface::of(&graph);
        interface.check_callable()?;
        interface.check_weights(&weights)?;
        let address = |(name, array): &(String, HostArray)| (name.clone(), array.bytes().as_ptr() as u64);
        let mut weight_names: Vec<(String, u64)> = weights.iter().map(address).collect();
        weight_names.sort_unstable();
        Ok(BoundGraph::of(graph, interface, weights, weight_names))
    }

    /// A graph whose weights and cache states lie on the device already. Its plans are its own: another graph with the same
    /// handles has others. What lies there does not count as the cache's.
    ///
    /// # Errors
    /// [`CallError`]: a graph that is not sound, a weight that is not there.
    pub fn resident(graph: Graph, resident: ResidentTensors) -> Result<BoundGraph, CallError> {
        yirage_ir::verify(&graph).map_err(CompileError::from)?;
        let interface = Interface::of(&graph);
        let held = |name: &String| resident.weights.all().any(|(entry, _)| entry.name == *name);
        if let Some((name, _)) = interface.weights.iter().find(|(name, _)| !held(name)) {
            return Err(CallError::Weight { name: name.clone(), why: "it is not on the device" });
        }
        let names = vec![("resident".to_owned(), RESIDENT.fetch_add(1, Ordering::Relaxed))];
        let resident = Some(Arc::new(resident));
        Ok(BoundGraph { resident, ..BoundGraph::of(graph, interface, Vec::new(), names) })
    }

    fn of(
        graph: Graph,
        interface: Interface,
        weights: Vec<(String, HostArray)>,
        names: Vec<(String, u64)>,
    ) -> BoundGraph {
        BoundGraph {
            hash: graph.structural_hash(),
            interface_hash: interface_hash(&interface),
            weight_names: names.into(),
            graph: Arc::new(graph),
            interface: Arc::new(interface),
            weights: weights.into(),
            resident: None,
            others: Dims::default(),
        }
    }

    /// The weights that lie on the device before any plan of this cache is made.
    pub(crate) fn resident_weights(&self) -> ResidentWeights {
        self.resident.as_ref().map(|resident| resident.weights.clone()).unwrap_or_default()
    }

    /// A plan on the device.
    pub(crate) fn load(
        &self,
        device: &dyn Device,
        plan: &VerifiedPlan,
        weights: &ResidentWeights,
        dims: Dims,
    ) -> Result<Callable, CallError> {
        match &self.resident {
            None => Callable::load(device, &self.interface, plan, weights, dims),
            Some(own) => Callable::load_with_kv_caches(device, &self.interface, plan, weights, &own.kv_caches, dims),
        }
    }

    /// The same with sizes of the symbols that no input has, such as the sequences of attention without a cache; otherwise
    /// there is none of them.
    #[must_use]
    pub fn with_sizes(self, others: Dims) -> BoundGraph {
        BoundGraph { others, ..self }
    }

    /// The sizes of a call with these inputs.
    pub(crate) fn dims(&self, inputs: &[HostArray]) -> Result<Dims, CallError> {
        let mut dims = self.interface.dims(inputs)?;
        let has = |sym: Sym| self.interface.step_inputs.iter().any(|(_, ty)| ty.shape.contains(&Dim::Sym(sym)));
        Sym::ALL.into_iter().filter(|&sym| !has(sym)).for_each(|sym| dims.set(sym, self.others.get(sym)));
        Ok(dims)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What it takes and gives.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Elements of its largest value in a call of these sizes.
    pub(crate) fn largest(&self, dims: &Dims) -> u64 {
        let elems = self.graph.values.iter().map(|value| value.ty.checked_elems(dims).unwrap_or(usize::MAX) as u64);
        elems.fold(0, u64::max)
    }
}
