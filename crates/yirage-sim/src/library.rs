//! The kernels: the references of the ops, one for each node of the plan, as launches or as operations of a library.

use crate::arguments::{CacheOperand, KernelOperand, encode};
use crate::operation;
use crate::weight_tiles::{WeightTileShape, WeightTiles};
use yirage_hal::HalError;
use yirage_hal::driver::{
    Binding, BindingAccess, CollectiveCall, KernelCall, KernelLaunch, Library, LibraryOperation, OperandBindings,
    PackedRows, ValueSlices, WeightPacking,
};
use yirage_hal::reference;
use yirage_ir::{Dims, Format, Type, text};
use yirage_plan::{DeviceLimits, KvCacheLayoutFacts, Plan, Target, WeightEntry};
use yirage_ranks::collective_kernel;

/// The name that plans have for the one kernel.
const KERNEL: &str = "sim/eval@1";

/// The name that plans have for what all devices of a group do.
const COLLECTIVES: &str = "sim/collective@1";

/// The library.
pub(crate) struct References {
    /// Whether kernels are operations of a vendor's library.
    pub(crate) operations: bool,
    /// What the device bounds.
    pub(crate) limits: DeviceLimits,
    /// Accelerators that compute a model together.
    pub(crate) ranks: u32,
    /// The type of a model's activations in `fast`.
    pub(crate) activations: Format,
    /// The tiles that weights of products lie in.
    pub(crate) weight_tiles: Option<WeightTileShape>,
    /// The layout of its own that caches have, wherever it holds them.
    pub(crate) cache_layout: Option<KvCacheLayoutFacts>,
}

impl References {
    /// How so many blocks of a cache lie: in the layout that the target wants most for them.
    fn cache_operand(&self, block: &Type, blocks: u32) -> CacheOperand {
        let rows = KvCacheLayoutFacts::rows(&[]);
        let own = self.cache_layout.as_ref().filter(|layout| layout.holds(block));
        let KvCacheLayoutFacts { order, align, .. } = own.unwrap_or(&rows);
        CacheOperand { blocks, order: *order, align: *align }
    }
}

impl Library for References {
    fn target(&self) -> Target {
        let tiles = self.weight_tiles.iter().map(WeightTileShape::facts).collect();
        let mut target = Target {
            limits: self.limits.clone(),
            activation_dtype: self.activations.into(),
            ranks: self.ranks.max(1),
            ..reference::target("sim", KERNEL, tiles, self.cache_layout.iter().cloned().collect())
        };
        if self.ranks > 1 {
            target.kernels.push(collective_kernel(COLLECTIVES, self.ranks));
        }
        target
    }

    fn weight_packing(&self, entry: &WeightEntry) -> Result<WeightPacking, HalError> {
        let tiles = WeightTiles::of(entry)?;
        let row_step = tiles.as_ref().map_or(1, WeightTiles::band_rows);
        let bytes = tiles.map_or_else(|| entry.ty.dense().bytes(&Dims::default()), |tiles| tiles.bytes());
        Ok(WeightPacking { bytes: bytes as u64, row_step })
    }

    fn packing(&self) -> Option<String> {
        Some("sim1".into())
    }

    fn pack<'a>(&self, entry: &WeightEntry, first_row: usize, rows: &'a [u8]) -> Result<PackedRows<'a>, HalError> {
        Ok(match WeightTiles::of(entry)? {
            Some(tiles) => {
                let (offset, bytes) = tiles.pack(first_row, rows);
                PackedRows { offset: offset as u64, bytes: bytes.into() }
            }
            None => {
                let row = entry.ty.dtype.row_bytes(entry.ty.width().unwrap_or(1));
                PackedRows { offset: (first_row * row) as u64, bytes: rows.into() }
            }
        })
    }

    /// How the plan's weights lie, and its graph, in their text forms: what a compiler of a real device makes of its own language.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError> {
        if self.operations {
            return Ok(Vec::new());
        }
        Ok(format!("{}{}", plan.weights.print(), text::print(&plan.graph)).into_bytes())
    }

    /// One kernel, bound to the sizes of the step and to the node's operands.
    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        let (number, graph) = (plan.steps[step].node, &plan.graph);
        let node = &graph.nodes[number as usize];
        if plan.kernels[plan.steps[step].kernel as usize].name == COLLECTIVES {
            return Ok(vec![KernelCall::Collective(CollectiveCall::of(graph, node, values)?)]);
        }
        let bound = OperandBindings::of(graph, node, values)?;
        let operand = |(&value, binding): (_, u32)| {
            let cache = match graph.kv_cache_of(value) {
                Some(cache) => Some(self.cache_operand(graph.ty(cache), values.blocks(value)?)),
                None => None,
            };
            // The sizes come first.
            Ok(KernelOperand { binding: binding + 1, cache })
        };
        let operands = node.ins.iter().chain(&node.outs).zip(bound.operands);
        let arguments = encode(&operands.map(operand).collect::<Result<Vec<_>, HalError>>()?);
        let mut bindings = vec![Binding { slice: values.sizes(), access: BindingAccess::Read }];
        bindings.extend(bound.bindings);
        Ok(vec![match self.operations {
            true => KernelCall::Operation(LibraryOperation {
                descriptor: operation::describe(graph, &plan.weights, node, &arguments),
                bindings,
            }),
            false => KernelCall::Launch(KernelLaunch::new(number.to_string(), bindings, arguments)),
        }])
    }
}
