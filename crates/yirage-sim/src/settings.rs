//! How a simulated accelerator behaves.

use crate::faults::Faults;
use crate::weight_tiles::WeightTileShape;
use std::time::Duration;
use yirage_ir::Format;
use yirage_kir::render::CDialect;
use yirage_plan::{DeviceLimits, KvCacheLayout, KvCacheLayoutFacts, KvCacheOrder};

/// What the kernels of an accelerator are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SimKernels {
    /// Code that evaluates the reference of an op.
    #[default]
    References,
    /// The same as operations of a vendor's library, prepared once and given a workspace.
    Operations,
    /// The kernels that every accelerator shares (`yirage-kernels`), each checked and interpreted: a race, an element beside
    /// memory and the like fail the step. Threads run in orders that are drawn from the seed.
    Interpreted,
    /// The same kernels as C++ of a dialect, by this system's compiler and an [`Emulator`](crate::Emulator) of its devices. They
    /// run in orders that are drawn from the seed.
    Emulated(CDialect),
    /// The same kernels, none of which is run: [`Sim::kernels`](crate::Sim::kernels) has them, and what they would write stays as it
    /// was.
    Recorded,
}

/// What an accelerator is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How many devices there are.
    pub devices: u32,
    /// Accelerators that are one device together, each with its part of a model.
    pub ranks: u32,
    /// Bytes of memory of each.
    pub memory: u64,
    /// What delays are drawn from.
    pub seed: u64,
    /// A command waits for up to so long before it runs.
    pub delay: Duration,
    /// A step takes so long beside what it computes.
    pub step: Duration,
    /// Steps that may be on the queue at once.
    pub in_flight: usize,
    /// Whether copies from the host have a queue of their own.
    pub transfer_queue: bool,
    /// Whether a step's commands are captured and replayed.
    pub captures_graphs: bool,
    /// Whether the host can read a clock of the device.
    pub clock: bool,
    /// What its kernels are.
    pub kernels: SimKernels,
    /// What the compiler is told that it bounds. Commands that go beyond fail.
    pub limits: DeviceLimits,
    /// The type of a model's activations in `fast`: of 32 or 16 bits. Interpreted kernels have 32.
    pub activations: Format,
    /// The tiles, which the library packs, that weights of products lie in instead of rows. Interpreted kernels have rows.
    pub weight_tiles: Option<WeightTileShape>,
    /// The layout of its own that caches have, instead of rows, where it holds them. Interpreted kernels have rows.
    pub cache_layout: Option<KvCacheLayoutFacts>,
    /// What goes wrong.
    pub faults: Faults,
}

impl Default for Settings {
    /// One device of 4 GiB that never waits and never fails.
    fn default() -> Settings {
        Settings {
            devices: 1,
            ranks: 1,
            memory: 4 << 30,
            seed: 0,
            delay: Duration::ZERO,
            step: Duration::ZERO,
            in_flight: 3,
            transfer_queue: true,
            captures_graphs: true,
            clock: true,
            kernels: SimKernels::References,
            limits: DeviceLimits::aligned(64),
            activations: Format::F32,
            weight_tiles: None,
            cache_layout: None,
            faults: Faults::default(),
        }
    }
}

impl Settings {
    /// An accelerator whose kernels are code that is given pointers, as CUDA and its kin have it, with a layout of its own for
    /// the weights of products, and caches of which a head's positions lie together, in blocks of 64.
    pub fn with_pointers() -> Settings {
        let heads = own_caches("sim-heads", KvCacheOrder::Heads, 1, &[64, 32, 16]);
        let limits = DeviceLimits { subgroup_widths: vec![32], ..DeviceLimits::aligned(64) };
        let tiles = Some(WeightTileShape::POINTERS);
        Settings { limits, weight_tiles: tiles, cache_layout: Some(heads), ..Settings::default() }
    }

    /// An accelerator whose kernels are bound to parts of buffers, within limits as those of WebGPU; it captures
    /// nothing, and has one queue. Blocks of its caches have 16 positions, so that more of them are within a binding.
    pub fn with_bindings() -> Settings {
        let limits = DeviceLimits { bindings: Some(32), binding_bytes: Some(128 << 20), ..DeviceLimits::aligned(256) };
        let short = own_caches("sim-short", KvCacheOrder::Positions, 1, &[16, 32, 64]);
        Settings {
            limits,
            transfer_queue: false,
            captures_graphs: false,
            weight_tiles: Some(WeightTileShape::BINDINGS),
            cache_layout: Some(short),
            ..Settings::default()
        }
    }

    /// An accelerator whose kernels are operations of a library with a workspace, as those of neural processors are; the
    /// host cannot read its clock. A head of a position of its caches begins at a multiple of 32 bytes.
    pub fn with_operations() -> Settings {
        let padded = own_caches("sim-padded", KvCacheOrder::Heads, 32, &[32, 16, 64]);
        Settings {
            kernels: SimKernels::Operations,
            clock: false,
            weight_tiles: Some(WeightTileShape::OPERATIONS),
            cache_layout: Some(padded),
            ..Settings::default()
        }
    }

    /// An accelerator with the kernels that every accelerator shares, within limits as those of WebGPU, whose interpreter finds
    /// what a kernel must not do.
    pub fn with_interpreter() -> Settings {
        Settings { kernels: SimKernels::Interpreted, ..Settings::with_bindings() }
    }

    /// The same with those kernels as C++ of a dialect.
    pub fn with_emulator(dialect: CDialect) -> Settings {
        Settings { kernels: SimKernels::Emulated(dialect), ..Settings::with_bindings() }
    }

    /// The same where no kernel is run, to learn what kernels there would be.
    pub fn with_recorder() -> Settings {
        Settings { kernels: SimKernels::Recorded, ..Settings::with_bindings() }
    }
}

/// A layout of caches of every format.
fn own_caches(name: &'static str, order: KvCacheOrder, align: u32, positions: &[u32]) -> KvCacheLayoutFacts {
    KvCacheLayoutFacts { layout: KvCacheLayout::named(name), order, align, ..KvCacheLayoutFacts::rows(positions) }
}
