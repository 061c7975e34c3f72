//! What a device does.

use crate::error::HalError;
use crate::handle::{KvCacheHandle, WeightHandle};
use crate::info::DeviceInfo;
use crate::kernel_variants::KernelVariants;
use crate::limit::{Limit, LimitProbe};
use crate::profile::Profiler;
use crate::step::{Fence, OutputHandle, StepRequest};
use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use yirage_ir::{Format, Type};
use yirage_mmap::WeightImage;
use yirage_plan::{ExecutorKind, Precision, Target, VerifiedPlan, WeightEntry};

/// Bytes of one pool of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolBytes {
    /// Bytes held now.
    pub used: u64,
    /// Most bytes held at any time.
    pub peak: u64,
}

/// Memory of a device by purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryReport {
    /// Weights.
    pub weights: PoolBytes,
    /// Cache states.
    pub cache: PoolBytes,
    /// Arenas and scratch of loaded plans.
    pub arena: PoolBytes,
    /// What programs of a driver's device have beside: step inputs, and workspaces of kernels.
    pub workspace: PoolBytes,
}

impl MemoryReport {
    /// Bytes held now, for any purpose.
    pub fn used(&self) -> u64 {
        [self.weights, self.cache, self.arena, self.workspace].into_iter().map(|pool| pool.used).sum()
    }

    /// This and what another device holds.
    pub(crate) fn and(self, other: MemoryReport) -> MemoryReport {
        let sum = |a: PoolBytes, b: PoolBytes| PoolBytes { used: a.used + b.used, peak: a.peak + b.peak };
        MemoryReport {
            weights: sum(self.weights, other.weights),
            cache: sum(self.cache, other.cache),
            arena: sum(self.arena, other.arena),
            workspace: sum(self.workspace, other.workspace),
        }
    }
}

/// Takes a weight piece by piece, so that the file's pages can be given back as soon as they are repacked.
pub trait WeightSink: Send {
    /// Rows a piece must start at a multiple of (except that the last piece may be shorter).
    fn row_step(&self) -> usize;
    /// Writes rows from `first_row` on; `bytes` are whole rows in the stored format. Rows of all leading dimensions
    /// are counted through (expert e's row i is row `e * n + i`).
    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError>;
    /// The finished weight.
    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError>;
}

/// Memory for the values of programs that never run together: the buckets of one model. The program that is loaded first
/// should want the most; one that wants more than is there has memory of its own.
#[derive(Clone, Default)]
pub struct SharedArena(Arc<Mutex<Option<Weak<dyn Any + Send + Sync>>>>);

impl SharedArena {
    /// The memory that is there if it `fits`, else what `make` makes, which is then there for others.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn memory<T: Any + Send + Sync, E>(
        &self,
        fits: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let mut there = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = there.as_ref().and_then(Weak::upgrade).and_then(|memory| memory.downcast::<T>().ok());
        if let Some(known) = known.filter(|known| fits(known)) {
            return Ok(known);
        }
        let made: Arc<T> = Arc::new(make()?);
        let kept: Arc<dyn Any + Send + Sync> = made.clone();
        *there = Some(Arc::downgrade(&kept));
        Ok(made)
    }
}

/// What the names of a plan stand for.
#[derive(Clone, Default)]
pub struct Bindings {
    /// Memory that the program may share with others.
    pub arena: SharedArena,
    /// Weights by name.
    pub weights: HashMap<String, WeightHandle>,
    /// States by name.
    pub kv_caches: HashMap<String, KvCacheHandle>,
    /// Choices of [`KernelVariants`](crate::KernelVariants) that the program's kernels compute by; the others, and with none all, are
    /// the device's own.
    pub kernel_variant: Option<String>,
}

/// A plan loaded on a device. Steps of all programs of a device run in the order in which they are submitted.
pub trait Program: Any + Send {
    /// Takes a step, which may run now or later. The executor has checked how many step inputs there are and how long each is.
    ///
    /// # Errors
    /// What is known at once to be wrong. What the step meets later is told by the fence.
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError>;
    /// Output `index` of the step submitted last.
    ///
    /// # Errors
    /// An output that is not there, or is a cache state.
    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError>;
    /// Makes an executor of the plan ready, before its first step.
    ///
    /// # Errors
    /// [`HalError::Unsupported`] where it cannot run this plan, and the others can.
    fn prepare(&mut self, _kind: ExecutorKind) -> Result<(), HalError> {
        Ok(())
    }
    /// Whether fences tell how long steps took by the device's own clock.
    fn has_device_times(&self) -> bool {
        false
    }
}

const NO_IMAGES: &str = "this device makes every weight from the model's files";
const NO_BLOCKS: &str = "this device's caches are reached by its kernels alone";

/// A device: takes weights, grants memory, loads plans.
pub trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;
    /// The facts the compiler needs.
    fn target(&self) -> Target;
    /// The devices of which each is to compute some of a model's layers, in order; none of a device that computes all of them.
    fn stages(&self) -> Option<&[Arc<dyn Device>]> {
        None
    }
    /// How many steps may be submitted before the first of them has ended: more than one where steps run beside the host.
    fn in_flight(&self) -> usize {
        1
    }
    /// Bytes held, by purpose.
    fn memory(&self) -> MemoryReport;
    /// Bytes that the weight will take.
    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError>;
    /// Bytes that one block of the state takes.
    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError>;
    /// Begins a weight.
    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError>;
    /// What the image of a weight depends on beside its entry and its values, in words: two devices that say the same
    /// make the same images. `None` for a device that has none.
    fn packing(&self) -> Option<String> {
        None
    }
    /// The image of a finished weight of this device, read back where the host does not reach it.
    fn image<'a>(&self, _weight: &'a WeightHandle) -> Result<Cow<'a, [u8]>, HalError> {
        Err(HalError::Unsupported { what: "the image of a weight".into(), why: NO_IMAGES.into() })
    }
    /// A weight from its image, which is used where it lies. The caller vouches that [`Device::image`] of a device with
    /// the same [`Device::packing`] gave these bytes for the same entry and values; what is checked is their number.
    fn adopt(&self, entry: &WeightEntry, _image: WeightImage) -> Result<WeightHandle, HalError> {
        Err(HalError::Unsupported { what: format!("the image of weight `{}`", entry.name), why: NO_IMAGES.into() })
    }
    /// Grants `blocks` blocks of a state. `k_width` splits a block's width into keys and values (all keys for a latent
    /// cache).
    fn kv_cache(&self, block: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError>;
    /// What lies in blocks of a cache, one block after the other, once everything submitted so far has run. It is in rows
    /// ([`yirage_plan::KvCacheLayout::ROWS`]: position after position, of each its heads), in the elements of the cache's
    /// type, however the device stores it: every device takes it for a cache of such elements and heads.
    ///
    /// # Errors
    /// [`HalError::Unsupported`] where the host does not reach caches, which is what a device says by itself; a block that
    /// the cache has not.
    fn read_kv_blocks(&self, _cache: &KvCacheHandle, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        Err(HalError::Unsupported {
            what: format!("reading {} blocks of a cache", blocks.len()),
            why: NO_BLOCKS.into(),
        })
    }
    /// Writes what [`Device::read_kv_blocks`] of any device has read to blocks of as many positions, once everything submitted so far has run.
    ///
    /// # Errors
    /// As [`Device::read_kv_blocks`]; contents that are not as long as the blocks.
    fn write_kv_blocks(&self, _cache: &KvCacheHandle, blocks: &[u32], _contents: &[u8]) -> Result<(), HalError> {
        Err(HalError::Unsupported {
            what: format!("writing {} blocks of a cache", blocks.len()),
            why: NO_BLOCKS.into(),
        })
    }
    /// Loads a plan that was proved for [`Device::target`]: resolves its kernels, grants its arena.
    ///
    /// # Errors
    /// A plan that was proved for another target, and bindings that are not of its types.
    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError>;
    /// Sets up a measurement of what the hardware can do at most, for as long as the probe is kept.
    ///
    /// # Errors
    /// [`HalError::Unsupported`] where the device has no such measurement or the hardware no such instruction, which is
    /// what a device says by itself.
    fn probe(&self, limit: Limit) -> Result<Box<dyn LimitProbe>, HalError> {
        let why = format!("the device {} does not measure itself", self.info().backend);
        Err(HalError::Unsupported { what: format!("the limit of {limit}"), why })
    }

    /// Keeps the times of the tasks of all programs that are loaded from now on: of `spans` tasks a worker at most. A device
    /// has one profiler; asked again it gives the same.
    ///
    /// # Errors
    /// [`HalError::Unsupported`] where the device does not know its tasks' times, and for too many spans.
    fn profile(&self, spans: usize) -> Result<Arc<Profiler>, HalError> {
        let why = format!("the device {} keeps no times of tasks", self.info().backend);
        Err(HalError::Unsupported { what: format!("a profile of {spans} tasks a worker"), why })
    }

    /// The ways in which its kernels compute the same bytes; none where there is one way.
    fn kernel_variants(&self) -> Option<&dyn KernelVariants> {
        None
    }

    /// The ceiling of arithmetic that products with weights of `format` meet.
    fn matmul_limit(&self, precision: Precision, format: Format) -> Limit {
        let _ = (precision, format);
        Limit::F32
    }
}
