//! The system's C++ compiler: kernels to a program.

use super::EmulatorError;
use super::source::{FILES, OPTIONS, SOURCES, source};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use yirage_hal::driver::side_by_side;
use yirage_kir::ComputeKernel;
use yirage_kir::render::CDialect;

/// Kernels of a source: the processor's cores each compile one at a time.
const KERNELS_OF_A_SOURCE: usize = 24;

/// A program in a folder that goes away with it.
#[derive(Debug)]
pub(super) struct EmulatorProgram {
    folder: ProgramFolder,
}

impl EmulatorProgram {
    /// The file to run.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.0.join("kernels")
    }
}

/// A program with these kernels.
pub(super) fn compile(dialect: CDialect, kernels: &[&ComputeKernel]) -> Result<EmulatorProgram, EmulatorError> {
    let folder = ProgramFolder::new()?;
    for (name, text) in FILES {
        folder.write(name, text)?;
    }
    let mut sources = SOURCES.map(str::to_owned).to_vec();
    for (at, part) in kernels.chunks(KERNELS_OF_A_SOURCE).enumerate() {
        let name = format!("kernels_{at}.cpp");
        let part: Vec<ComputeKernel> = part.iter().copied().cloned().collect();
        folder.write(&name, &source(dialect, &part))?;
        sources.push(name);
    }
    let subgroup = format!("-DEMULATED_SUBGROUP={}u", dialect.subgroup);
    let options = format!("@{OPTIONS}");
    let object = |source: &String| {
        let made = format!("{source}.o");
        let told = [options.as_str(), "-I.", subgroup.as_str(), "-c", source, "-o", &made];
        compiler(dialect, &folder.0, &told.map(str::to_owned))
    };
    side_by_side(&sources, object)?;
    let mut linked: Vec<String> = sources.iter().map(|source| format!("{source}.o")).collect();
    linked.extend(["-lm", "-o", "kernels"].map(str::to_owned));
    compiler(dialect, &folder.0, &linked)?;
    Ok(EmulatorProgram { folder })
}

/// Runs `$CXX`, or `c++`, in a folder.
fn compiler(dialect: CDialect, folder: &Path, arguments: &[String]) -> Result<(), EmulatorError> {
    let program = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
    let done = Command::new(&program).args(arguments).current_dir(folder).output();
    let what = || program.to_string_lossy().into_owned();
    let done = done.map_err(|e| EmulatorError::System { what: what(), why: e.to_string() })?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let why = said.lines().take(40).collect::<Vec<_>>().join("\n");
    Err(EmulatorError::Source { dialect: dialect.name, why })
}

/// A folder of this process's own.
#[derive(Debug)]
struct ProgramFolder(PathBuf);

impl ProgramFolder {
    fn new() -> Result<ProgramFolder, EmulatorError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("yirage-emulator-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|e| unusable(&path, &e))?;
        Ok(ProgramFolder(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), EmulatorError> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|e| unusable(&path, &e))
    }
}

impl Drop for ProgramFolder {
    fn drop(&mut self) {
        // What is left behind lies where the system clears up.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn unusable(path: &Path, why: &std::io::Error) -> EmulatorError {
    EmulatorError::System { what: path.display().to_string(), why: why.to_string() }
}
