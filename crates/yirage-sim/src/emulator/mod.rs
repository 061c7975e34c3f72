//! Kernels as C++ of a dialect, compiled by this system's compiler and run on the processor as a group's threads would run
//! them.
//!
//! What is compiled is the text that [`CDialect::source`] prints for a device, word for word; the headers in `cpp/` give it
//! what the device's compiler would. It runs in a process of its own, so that whatever it does ends a launch and nothing more:
//! an access beside a buffer, a thread that is not where the others meet, an operation that has no value in C++.

mod compiler;
mod process;
mod source;

use process::EmulatorProcess;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_kir::ComputeKernel;
use yirage_kir::render::CDialect;

/// Why kernels are not compiled or a launch was not run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmulatorError {
    /// There is no compiler, or nowhere to put what it makes.
    #[error("{what} cannot be used: {why}")]
    System {
        /// A program or a place.
        what: String,
        /// What the system said.
        why: String,
    },
    /// The compiler does not take a source.
    #[error("the C++ compiler does not take a source of {dialect}:\n{why}")]
    Source {
        /// The dialect's name.
        dialect: &'static str,
        /// What the compiler said.
        why: String,
    },
    /// No kernel of this name was compiled.
    #[error("no kernel `{0}` was compiled; compile it first")]
    NoKernel(String),
    /// What was wrong with a launch.
    #[error("{0}")]
    Launch(String),
}

/// A launch of a kernel.
#[derive(Debug)]
pub struct EmulatedLaunch<'a, 'b> {
    /// The kernel.
    pub kernel: &'a ComputeKernel,
    /// Groups of threads along the three axes.
    pub grid: [u32; 3],
    /// What orders of threads are drawn from.
    pub seed: u32,
    /// What the kernel's buffers hold, in order. Those that it writes are changed.
    pub buffers: &'a mut [&'b mut [u32]],
}

/// A compiler and its programs for one dialect.
#[derive(Debug)]
pub struct Emulator {
    dialect: CDialect,
    programs: Mutex<EmulatorPrograms>,
}

/// The programs so far, and which of them has a kernel.
#[derive(Default, Debug)]
struct EmulatorPrograms {
    all: Vec<Arc<Mutex<EmulatorProcess>>>,
    of_kernel: HashMap<String, usize>,
}

impl Emulator {
    /// The emulator of a dialect. Nothing is compiled yet.
    pub fn new(dialect: CDialect) -> Emulator {
        Emulator { dialect, programs: Mutex::default() }
    }

    /// Compiles kernels, but for those whose names it knows: many at once take much less time than one by one.
    ///
    /// # Errors
    /// [`EmulatorError::System`] without a compiler, [`EmulatorError::Source`] for what it does not take.
    pub fn compile(&self, kernels: &[ComputeKernel]) -> Result<(), EmulatorError> {
        let mut programs = self.programs();
        let mut names = HashSet::new();
        let is_new = |kernel: &&ComputeKernel| !programs.of_kernel.contains_key(&kernel.name);
        let new: Vec<&ComputeKernel> =
            kernels.iter().filter(is_new).filter(|kernel| names.insert(kernel.name.as_str())).collect();
        if new.is_empty() {
            return Ok(());
        }
        let program = compiler::compile(self.dialect, &new)?;
        let number = programs.all.len();
        programs.all.push(Arc::new(Mutex::new(EmulatorProcess::new(program))));
        programs.of_kernel.extend(new.into_iter().map(|kernel| (kernel.name.clone(), number)));
        Ok(())
    }

    /// Runs a launch of a kernel that was compiled.
    ///
    /// # Errors
    /// [`EmulatorError::Launch`] for whatever the kernel must not do.
    pub fn run(&self, launch: EmulatedLaunch<'_, '_>) -> Result<(), EmulatorError> {
        let name = &launch.kernel.name;
        let program = {
            let programs = self.programs();
            let number = programs.of_kernel.get(name).ok_or_else(|| EmulatorError::NoKernel(name.clone()))?;
            Arc::clone(&programs.all[*number])
        };
        program.lock().unwrap_or_else(PoisonError::into_inner).run(launch)
    }

    fn programs(&self) -> MutexGuard<'_, EmulatorPrograms> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
