//! Kernels that every accelerator shares, run by their interpreter.

use crate::launch::SimLaunch;
use crate::memory::SimMemory;
use std::collections::HashMap;
use yirage_hal::driver::{BufferSlice, DriverError};
use yirage_ir::rng::Rng;
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings, ThreadSchedule};
use yirage_kir::{BufferAccess, text, verify};

/// Threads that a subgroup may have: devices differ in it.
const SUBGROUP_SIZES: [u32; 4] = [8, 16, 32, 64];

/// Instructions that all threads of a launch may run together: a launch that runs more does not end.
const BUDGET: u64 = 1 << 30;

/// Kernels that were given as their text, each checked.
#[derive(Debug)]
pub(crate) struct InterpretedModule {
    kernels: Vec<InterpretedKernel>,
    numbers: HashMap<String, usize>,
}

impl InterpretedModule {
    /// Reads kernels.
    pub(crate) fn new(code: &[u8]) -> Result<InterpretedModule, DriverError> {
        let failed = |e: &dyn std::fmt::Display| DriverError::Failed { call: "module", why: e.to_string() };
        let kernels = text::parse(str::from_utf8(code).map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
        let checked = |kernel| {
            verify(&kernel)?;
            InterpretedKernel::new(kernel)
        };
        let kernels: Vec<_> = kernels.into_iter().map(checked).collect::<Result<_, _>>().map_err(|e| failed(&e))?;
        let numbers = kernels.iter().zip(0..).map(|(made, at)| (made.kernel().name.clone(), at)).collect();
        Ok(InterpretedModule { kernels, numbers })
    }

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
        let done = kernel.run(launch.grid, &mut buffers, &drawn(schedules));
        done.map_err(|fault| DriverError::Failed { call: "launch", why: fault.to_string() })?;
        for ((slice, words), buffer) in slices.into_iter().zip(&words).zip(&kernel.kernel().buffers) {
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

/// How a launch is run: one in four thread by thread, the others in step from either end.
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
