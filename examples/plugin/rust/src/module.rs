//! A source, compiled by the system's C++ compiler with the emulator and loaded: a maker's run-time compiler in its place.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Threads of a subgroup in the dialect that the device names.
const SUBGROUP: u32 = 32;
const NOW_AND_LOCAL: c_int = 2;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
}

/// Runs a kernel by its place; what goes wrong is returned.
type RunFunction = unsafe extern "C" fn(u32, *const *mut c_void, *const u32) -> *const c_char;

/// A kernel as the source's caller tells of it.
pub struct KernelOfSource {
    pub name: String,
    pub threads: u32,
    pub buffers: u32,
}

pub struct Module {
    library: *mut c_void,
    run: RunFunction,
    names: Vec<String>,
}

/// The folder with the emulator's sources.
pub fn emulator() -> Option<PathBuf> {
    let named = std::env::var_os("SOFTWARE_EMULATOR").map(PathBuf::from);
    named.or_else(|| option_env!("SOFTWARE_EMULATOR_HERE").map(PathBuf::from))
}

/// Runs the compiler in a folder; what it says on standard error is what is wrong.
pub fn compile(folder: &Path, arguments: &[String]) -> Result<(), String> {
    let program = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let done = Command::new(program).current_dir(folder).args(arguments).output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

/// A source between what the emulator gives a kernel and what runs one by its place.
fn whole(source: &str, kernels: &[KernelOfSource]) -> String {
    let mut text =
        String::from("#include <setjmp.h>\n#include <stdio.h>\n#include \"grid.hpp\"\n#include \"cuda.hpp\"\n");
    text += source;
    for (at, kernel) in kernels.iter().enumerate() {
        let buffers: Vec<String> = (0..kernel.buffers).map(|buffer| format!("b[{buffer}]")).collect();
        let call = format!("{}({})", kernel.name, buffers.join(", "));
        let _ = write!(text, "\nstatic void run_{at}(const emulator::Buffer* b) {{ {call}; }}");
    }
    text +=
        "\nstatic const struct { const char* name; unsigned threads; void (*run)(const emulator::Buffer*); } all[] = {";
    for (at, kernel) in kernels.iter().enumerate() {
        let _ = write!(text, "{{\"{}\", {}, run_{at}}},", kernel.name, kernel.threads);
    }
    text += r#"};
static jmp_buf land;
static char said[512];
void emulator::failed(const char* text) { snprintf(said, sizeof said, "%s", text); longjmp(land, 1); }
extern "C" const char* run(unsigned at, void* const* buffers, const unsigned* grid) {
  if (setjmp(land)) return said;
  emulator::run_grid({all[at].name, all[at].run, (const emulator::Buffer*)buffers, all[at].threads, {grid[0], grid[1], grid[2]}, 1});
  return nullptr;
}
"#;
    text
}

impl Module {
    /// Compiles a source as the module of a number in a folder, where `grid.o` lies.
    pub fn new(folder: &Path, number: u64, source: &str, kernels: Vec<KernelOfSource>) -> Result<Module, String> {
        let emulator = emulator().ok_or("SOFTWARE_EMULATOR is not set")?;
        let file = folder.join(format!("{number}.cpp"));
        std::fs::write(&file, whole(source, &kernels)).map_err(|error| format!("{}: {error}", file.display()))?;
        let told = [
            "-U_FORTIFY_SOURCE",
            "-fPIC",
            "-shared",
            "-o",
            &format!("{number}.so"),
            &format!("{number}.cpp"),
            "grid.o",
            "-lm",
        ];
        let mut arguments = vec![
            format!("@{}", emulator.join("options").display()),
            format!("-I{}", emulator.display()),
            format!("-DEMULATED_SUBGROUP={SUBGROUP}u"),
        ];
        arguments.extend(told.map(str::to_owned));
        compile(folder, &arguments)?;
        let path = CString::new(folder.join(format!("{number}.so")).into_os_string().into_encoded_bytes());
        let path = path.map_err(|error| error.to_string())?;
        // SAFETY: the path ends with a 0; the library's initialisers are the compiler's.
        let library = unsafe { dlopen(path.as_ptr(), NOW_AND_LOCAL) };
        if library.is_null() {
            return Err("a module is not loaded".into());
        }
        // SAFETY: the library is loaded, and the name ends with a 0.
        let run = unsafe { dlsym(library, c"run".as_ptr()) };
        if run.is_null() {
            return Err("a module has nothing to run".into());
        }
        // SAFETY: `whole` has written a function of this type.
        let run = unsafe { std::mem::transmute::<*mut c_void, RunFunction>(run) };
        Ok(Module { library, run, names: kernels.into_iter().map(|kernel| kernel.name).collect() })
    }

    /// Runs a kernel.
    ///
    /// # Safety
    /// The buffers are as many as the kernel takes, and as long as it reads and writes.
    pub unsafe fn run(&self, name: &str, buffers: &[*mut c_void], grid: [u32; 3]) -> Result<(), String> {
        let at = self.names.iter().position(|of| of == name).ok_or("the module has no such kernel")?;
        // SAFETY: the kernel is one of the module's, and `Module::run` is promised its buffers.
        let wrong = unsafe { (self.run)(at as u32, buffers.as_ptr(), grid.as_ptr()) };
        if wrong.is_null() {
            return Ok(());
        }
        // SAFETY: the module's text ends with a 0 and stays until the next run.
        Err(unsafe { CStr::from_ptr(wrong) }.to_string_lossy().into_owned())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: `new` has loaded it, and nobody runs it any more.
        unsafe { dlclose(self.library) };
    }
}
