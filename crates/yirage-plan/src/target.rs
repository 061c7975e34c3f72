//! What the compiler is told of a device: facts, as data.

use crate::capabilities::KernelCapabilities;
use crate::device_limits::DeviceLimits;
use crate::kv_cache_layout::{KvCacheLayout, KvCacheLayoutFacts};
use crate::plan::KernelRef;
use crate::program::ExecutorKind;
use crate::rules::OpRule;
use crate::weight_layout::WeightLayoutFacts;
use yirage_ir::{ActivationFormat, DType, Dims, Format, RegionKind, Type};

/// Where a kernel comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KernelOrigin {
    /// Written for the backend, or an operation of a vendor's library.
    Library,
    /// A text with holes, filled for the sizes and types of a node.
    Template,
    /// Made from the node itself.
    Generated,
    /// The reference evaluation of the ops.
    Reference,
}

/// A kernel a target has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelFacts {
    /// What plans say of it, which must be the same.
    pub kernel: KernelRef,
    /// Where it comes from.
    pub origin: KernelOrigin,
    /// Kinds of regions it runs, beside single ops.
    pub regions: Vec<RegionKind>,
    /// The ops it runs, single or in such regions, and what each may read.
    pub rules: Vec<OpRule>,
}

/// A layout of activations that a target has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActivationFormatFacts {
    /// The layout.
    pub format: ActivationFormat,
    /// Bytes of one of its blocks as the target stores it.
    pub block_bytes: u32,
    /// Rows are padded to a multiple of this many elements.
    pub row_multiple: u32,
}

impl ActivationFormatFacts {
    fn storage_bytes(&self, ty: &Type, dims: &Dims) -> Option<u64> {
        let width = ty.width()?;
        let rows = ty.checked_elems(dims)?.checked_div(width).unwrap_or(0);
        let padded = width.checked_next_multiple_of(self.row_multiple as usize)?;
        let blocks = rows.checked_mul(padded)? / self.format.info().block;
        u64::try_from(blocks).ok()?.checked_mul(u64::from(self.block_bytes))
    }
}

/// How the ranks of a group share a model's experts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ExpertDivision {
    /// Each has its part of every expert's rows: all are equally busy whichever experts are chosen.
    #[default]
    Rows,
    /// Each has experts of its own: an expert is read by one rank, and its inner activations go to no other.
    Whole,
}

/// A device as the compiler sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Backend name.
    pub family: String,
    /// Architecture and instruction set.
    pub arch: String,
    /// What can pay on it.
    pub capabilities: KernelCapabilities,
    /// Workers that share a step.
    pub workers: u32,
    /// Devices that compute a model together, of which each has a part of the weights.
    pub ranks: u32,
    /// How they share experts, which a plan says of itself: a rank runs either.
    pub experts: ExpertDivision,
    /// The layouts of weights that it has, most wanted first.
    pub weight_layouts: Vec<WeightLayoutFacts>,
    /// The layouts of KV caches that it has, most wanted first.
    pub kv_cache_layouts: Vec<KvCacheLayoutFacts>,
    /// The layouts of activations that it has, most wanted first. Where there is none, activations stay floats.
    pub activation_formats: Vec<ActivationFormatFacts>,
    /// The type in which it computes the activations of models, where their precision is `fast`.
    pub activation_dtype: DType,
    /// What its hardware bounds.
    pub limits: DeviceLimits,
    /// The executors it has. A plan gets a task program for each that runs one.
    pub executors: Vec<ExecutorKind>,
    /// Kernels, most wanted first.
    pub kernels: Vec<KernelFacts>,
}

impl Target {
    /// Bytes that a value takes in the target's memory; `None` where that is no number, or the target has no such layout.
    pub fn storage_bytes(&self, ty: &Type, dims: &Dims) -> Option<u64> {
        match ty.activation_format {
            Some(layout) => self.activation_format(layout)?.storage_bytes(ty, dims),
            None => u64::try_from(ty.checked_bytes(dims)?).ok(),
        }
    }

    /// What it says of a layout of activations; `None` where it has no such one.
    pub fn activation_format(&self, layout: ActivationFormat) -> Option<&ActivationFormatFacts> {
        self.activation_formats.iter().find(|facts| facts.format == layout)
    }

    /// What it says of the layout of weights called `name`; `None` where it has no such one.
    pub fn weight_layout(&self, name: &str) -> Option<&WeightLayoutFacts> {
        self.weight_layouts.iter().find(|facts| facts.layout.name() == name)
    }

    /// What it says of the layout that blocks of this type have: of those that hold them the one that it wants most. `None` of
    /// recurrent states, which lie alike everywhere, and where it holds no such blocks.
    pub fn kv_cache_layout(&self, block: &Type) -> Option<&KvCacheLayoutFacts> {
        self.kv_cache_layouts.iter().find(|facts| facts.holds(block))
    }

    /// The layout that blocks of this type have; `None` where it holds no such blocks.
    pub fn kv_cache_layout_of(&self, block: &Type) -> Option<KvCacheLayout> {
        match block.shape.len() {
            3 => self.kv_cache_layout(block).map(|facts| facts.layout),
            _ => Some(KvCacheLayout::STATES),
        }
    }

    /// How many positions a block of a cache of this format should have; `None` where it has no such cache.
    pub fn kv_block_positions(&self, format: Format) -> Option<u32> {
        let facts = self.kv_cache_layouts.iter().find(|facts| facts.formats.contains(&format))?;
        facts.positions.first().copied()
    }

    /// Workers, of which there is always one.
    pub fn queues(&self) -> u32 {
        self.workers.max(1)
    }

    /// Whether some kernel runs regions of this kind. Where none does, nodes stay alone.
    pub fn runs_regions(&self, kind: RegionKind) -> bool {
        self.kernels.iter().any(|facts| facts.regions.contains(&kind))
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&KernelFacts> {
        self.kernels.iter().find(|facts| facts.kernel.name == name)
    }

    /// Whether it runs the plans that were proved for another one: the same but for what the compiler alone asks of it.
    pub fn runs_plans_of(&self, proved_for: &Target) -> bool {
        *self == Target { experts: self.experts, ..proved_for.clone() }
    }

    /// One line that names the target in plans and cache keys.
    pub fn describe(&self) -> String {
        let ranks = if self.ranks > 1 { format!(" ranks={}", self.ranks) } else { String::new() };
        format!("{} {} workers={}{ranks}", self.family, self.arch, self.workers)
    }
}
