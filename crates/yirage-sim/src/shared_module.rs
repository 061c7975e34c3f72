//! Modules of kernels that every accelerator shares, and the ways to run them: by their interpreter, as C++ by an emulator, or not
//! at all.

use crate::emulator::{EmulatedLaunch, Emulator};
use crate::launch::SimLaunch;
use crate::memory::SimMemory;
use crate::settings::SimKernels;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::driver::{BufferSlice, DriverError};
use yirage_ir::rng::Rng;
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings, ThreadSchedule};
use yirage_kir::{BufferAccess, ComputeKernel, text, verify};

/// Threads that a subgroup may have: devices differ in it.
const SUBGROUP_SIZES: [u32; 4] = [8, 16, 32, 64];

/// Instructions that all threads of a launch may run together: a launch that runs more does not end.
const BUDGET: u64 = 1 << 30;

/// What the devices of a backend have in common: the kernels that any of them was given, and what compiles them.
#[derive(Debug)]
pub(crate) struct SharedKernels {
    how: SimKernels,
    emulator: Option<Arc<Emulator>>,
    given: Mutex<BTreeMap<String, ComputeKernel>>,
}

impl SharedKernels {
    /// None so far.
    pub(crate) fn new(how: SimKernels) -> SharedKernels {
        let emulator = match how {
            SimKernels::Emulated(dialect) => Some(Arc::new(Emulator::new(dialect))),
            SimKernels::References | SimKernels::Operations | SimKernels::Interpreted | SimKernels::Recorded => None,
        };
        SharedKernels { how, emulator, given: Mutex::default() }
    }

    /// What compiles kernels, where something does.
    pub(crate) fn emulator(&self) -> Option<&Emulator> {
        self.emulator.as_deref()
    }

    /// All kernels that devices were given, by their names.
    pub(crate) fn given(&self) -> Vec<ComputeKernel> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Reads a module's kernels and makes them ready.
    pub(crate) fn module(&self, code: &[u8]) -> Result<SharedModule, DriverError> {
        let kernels = text::parse(str::from_utf8(code).map_err(failed("module"))?).map_err(failed("module"))?;
        kernels.iter().try_for_each(verify).map_err(failed("module"))?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.extend(kernels.iter().map(|kernel| (kernel.name.clone(), kernel.clone())));
        drop(given);
        let runner = match (self.how, &self.emulator) {
            (SimKernels::Recorded, _) => KernelRunner::Nobody,
            (_, Some(emulator)) => {
                emulator.compile(&kernels).map_err(failed("module"))?;
                KernelRunner::Emulator(Arc::clone(emulator))
            }
            (_, None) => {
                let made = kernels.iter().cloned().map(InterpretedKernel::new).collect::<Result<_, _>>();
                KernelRunner::Interpreter(made.map_err(failed("module"))?)
            }
        };
        let numbers = kernels.iter().zip(0..).map(|(kernel, at)| (kernel.name.clone(), at)).collect();
        Ok(SharedModule { kernels, numbers, runner })
    }
}

/// Kernels that were given as their text, each checked.
#[derive(Debug)]
pub(crate) struct SharedModule {
    kernels: Vec<ComputeKernel>,
    numbers: HashMap<String, usize>,
    runner: KernelRunner,
}

/// What runs kernels.
#[derive(Debug)]
enum KernelRunner {
    /// The interpreter of each.
    Interpreter(Vec<InterpretedKernel>),
    Emulator(Arc<Emulator>),
    Nobody,
}

impl SharedModule {
    /// The number of the kernel of this name.
    pub(crate) fn kernel(&self, entry: &str) -> Option<usize> {
        self.numbers.get(entry).copied()
    }

    /// Runs a launch, with threads in an order that is drawn.
    pub(crate) fn run(
        &self,
        launch: &SimLaunch,
        schedules: &mut Rng,
        memory: &mut SimMemory,
    ) -> Result<(), DriverError> {
        let kernel = &self.kernels[launch.kernel];
        let slices: Vec<BufferSlice> = launch.bindings.iter().map(|binding| binding.slice).collect();
        let words = slices.iter().map(|&slice| Ok(words(memory.read(slice)?))).collect::<Result<Vec<_>, _>>();
        let mut words: Vec<Vec<u32>> = words?;
        let mut buffers: Vec<&mut [u32]> = words.iter_mut().map(Vec::as_mut_slice).collect();
        match &self.runner {
            KernelRunner::Interpreter(made) => {
                made[launch.kernel].run(launch.grid, &mut buffers, &drawn(schedules)).map_err(failed("launch"))?;
            }
            KernelRunner::Emulator(emulator) => {
                let seed = schedules.next_u64() as u32;
                let launch = EmulatedLaunch { kernel, grid: launch.grid, seed, buffers: &mut buffers };
                emulator.run(launch).map_err(failed("launch"))?;
            }
            KernelRunner::Nobody => return Ok(()),
        }
        for ((slice, words), buffer) in slices.into_iter().zip(&words).zip(&kernel.buffers) {
            if buffer.access != BufferAccess::Read {
                let bytes = memory.write(slice)?;
                words.iter().zip(bytes.chunks_mut(4)).for_each(|(word, bytes)| {
                    bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
                });
            }
        }
        Ok(())
    }
}

fn failed<E: std::fmt::Display>(call: &'static str) -> impl Fn(E) -> DriverError {
    move |e| DriverError::Failed { call, why: e.to_string() }
}

/// How a launch is interpreted: one in four thread by thread, the others in step from either end.
fn drawn(schedules: &mut Rng) -> InterpreterSettings {
    let schedule = match schedules.below(8) {
        0 | 1 => ThreadSchedule::OneByOne(schedules.next_u64()),
        2..=4 => ThreadSchedule::Ascending,
        _ => ThreadSchedule::Descending,
    };
    InterpreterSettings { schedule, subgroup_size: *schedules.choose(&SUBGROUP_SIZES), budget: BUDGET }
}

/// Memory as words; bytes behind the last whole one are filled up with zeros.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}
