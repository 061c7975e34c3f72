//! Steps as one kernel (a persistent megakernel): its blocks are on the device together and run the groups of a step's launches, each
//! behind the launches whose bytes it touches.
//!
//! The kernels are those of the other executors, as functions of one (`source.rs`), so their bytes are the same; which launches
//! there are and what they wait for is a table in the device's memory (`table.rs`), made of the plan's task program. Unknown here: what
//! a kernel computes.

pub(crate) mod source;
mod table;

use crate::buffers::DeviceBuffers;
use crate::kernels::{KernelModule, KernelToolchain, LoadedKernels, ReadyLaunch};
use crate::queue::{InUse, StreamQueue};
use crate::runtime::{DeviceAttribute, DeviceMemory, DeviceRange};
use crate::status::{refused, unsupported};
use std::collections::HashMap;
use std::sync::Arc;
use table::{StepKernel, StepTable, most_blocks};
use yirage_hal::Record;
use yirage_hal::driver::{DriverError, PersistentStep, PersistentStepId};
use yirage_kernels::ModuleKernel;

/// What parts of a step's memory begin at a multiple of, in bytes.
const PART: usize = 256;

/// A step that is ready to run.
pub(crate) struct ReadyStep {
    launch: ReadyLaunch,
    /// What counts the blocks that have ended each launch.
    counters: DeviceRange,
    /// The table, the pointers and the counters.
    _memory: DeviceMemory,
}

/// What a step is made ready with.
pub(crate) struct StepSite<'a> {
    pub(crate) toolchain: &'a KernelToolchain,
    pub(crate) kernels: &'a mut LoadedKernels,
    pub(crate) module: &'a KernelModule,
    pub(crate) buffers: &'a DeviceBuffers,
    pub(crate) queue: &'a StreamQueue,
}

impl ReadyStep {
    /// Makes a step ready: its kernel is compiled, unless that was done for another step of the same kernels.
    pub(crate) fn new(site: StepSite<'_>, step: &PersistentStep) -> Result<ReadyStep, DriverError> {
        let StepSite { toolchain, kernels, module, buffers, queue } = site;
        let (own, numbers) = kernels_of(module, step)?;
        let around = toolchain.around_functions.as_str();
        let text = source::source(&own, &toolchain.dialect, around).map_err(cannot_be_one)?;
        let at_once = |number: u32| text.at_once.get(number as usize).copied().unwrap_or(1);
        let numbered = numbers.into_iter();
        let numbers: HashMap<&str, StepKernel> =
            numbered.map(|(name, number)| (name, StepKernel { number, at_once: at_once(number) })).collect();
        let most = most_blocks(step, &numbers).map_err(cannot_be_one)?;
        let kernel = kernels.kernel(toolchain, text.kernel).map_err(|error| match error {
            DriverError::Failed { call, why } => cannot_be_one(format!("{call}: {why}")),
            other => other,
        })?;
        let resident = kernel.resident_blocks(&toolchain.context)?;
        let blocks = toolchain.context.attribute(DeviceAttribute::Multiprocessors)?.saturating_mul(resident).min(most);
        if blocks == 0 {
            return Err(cannot_be_one("no multiprocessor has room for a block of it"));
        }
        let addresses = |number: usize| {
            let bindings = step.launches[number].launch.bindings.iter();
            bindings.map(|binding| Ok(buffers.range("prepare", binding.slice)?.address())).collect()
        };
        let table = StepTable::new::<DriverError>(step, blocks, &numbers, addresses)?;
        let parts = StepParts::of(&table, step.launches.len());
        let memory = DeviceMemory::new(&toolchain.context, parts.end as u64)?;
        let part = |begin: usize, bytes: usize| {
            memory
                .range(begin as u64, bytes as u64)
                .ok_or_else(|| refused("prepare", "a part lies outside of its memory"))
        };
        let given: Arc<Record> = Arc::new(Record::of(&parts.bytes(&table)));
        let all = part(0, parts.counters)?;
        queue.submit([Box::new(given.clone()) as InUse], |stream| {
            stream.upload(yirage_hal::HostMemory::bytes(&*given), all)
        })?;
        let counters = part(parts.counters, step.launches.len() * 4)?;
        let sizes = buffers.range("prepare", step.sizes)?;
        let pointers = vec![sizes, part(parts.words, table.words.len() * 4)?, part(0, parts.words)?, counters];
        Ok(ReadyStep { launch: ReadyLaunch::cooperative(&kernel, blocks, pointers), counters, _memory: memory })
    }

    /// Submits it.
    pub(crate) fn run(&self, queue: &StreamQueue) -> Result<(), DriverError> {
        queue.submit([], |stream| {
            if self.counters.bytes() > 0 {
                stream.fill(self.counters, 0)?;
            }
            self.launch.submit(stream, false)
        })
    }
}

/// Where the parts of a step's memory begin: pointers at its beginning, then the table, then the counters.
struct StepParts {
    words: usize,
    counters: usize,
    end: usize,
}

impl StepParts {
    fn of(table: &StepTable, launches: usize) -> StepParts {
        let words = (table.pointers.len() * 8).next_multiple_of(PART);
        let counters = words + (table.words.len() * 4).next_multiple_of(PART);
        StepParts { words, counters, end: counters + (launches * 4).next_multiple_of(PART).max(PART) }
    }

    fn bytes(&self, table: &StepTable) -> Vec<u8> {
        let mut bytes: Vec<u8> = table.pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        bytes.resize(self.words, 0);
        bytes.extend(table.words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(self.counters, 0);
        bytes
    }
}

/// The kernels of a step, each once, and their numbers by their names.
fn kernels_of<'a, 'b>(
    module: &'a KernelModule,
    step: &'b PersistentStep,
) -> Result<(Vec<&'a ModuleKernel>, HashMap<&'b str, u32>), DriverError> {
    let (mut own, mut numbers) = (Vec::new(), HashMap::new());
    for launch in &step.launches {
        let config = &launch.launch.config;
        let kernel = module.source(&config.entry)?;
        let wanted = (kernel.threads(), kernel.buffers());
        let got = (config.block.iter().product::<u32>(), launch.launch.bindings.len());
        if got != wanted || config.block[0] != wanted.0 || config.shared_bytes > 0 || !config.arguments.is_empty() {
            let entry = &config.entry;
            let why = format!("kernel `{entry}`: expected (threads, buffers) {wanted:?} and nothing else, got {got:?}");
            return Err(refused("prepare", why));
        }
        numbers.entry(config.entry.as_str()).or_insert_with(|| {
            own.push(kernel);
            own.len() as u32 - 1
        });
    }
    Ok((own, numbers))
}

fn cannot_be_one(why: impl Into<String>) -> DriverError {
    unsupported("a step as one kernel", why)
}

/// The steps of a device.
#[derive(Default)]
pub(crate) struct PersistentSteps {
    all: HashMap<u64, Arc<ReadyStep>>,
    last: u64,
}

impl PersistentSteps {
    pub(crate) fn add(&mut self, step: ReadyStep) -> PersistentStepId {
        self.last += 1;
        self.all.insert(self.last, Arc::new(step));
        PersistentStepId(self.last)
    }

    pub(crate) fn get(&self, step: PersistentStepId) -> Result<&Arc<ReadyStep>, DriverError> {
        self.all.get(&step.0).ok_or_else(|| refused("run", format!("there is no persistent step {}", step.0)))
    }

    pub(crate) fn remove(&mut self, step: PersistentStepId) -> Option<Arc<ReadyStep>> {
        self.all.remove(&step.0)
    }
}
