//! A vendor's compiler: C++ of its dialect to code of one architecture.

use crate::limits::MOST_LOG;
use crate::status::{SUCCESS, refused, unsupported};
use crate::symbols::{ArchFunctions, CompilerFunctions, RawHandle};
use crate::vendor::VendorRuntime;
use std::ffi::{CString, c_char};
use std::ptr::{null, null_mut};
use yirage_hal::driver::DriverError;
use yirage_probe::{DriverLibrary, ProbeError};

/// `NVRTC_ERROR_COMPILATION`, which all of them have.
const DOES_NOT_COMPILE: i32 = 6;
/// More architectures than any compiler knows.
const MOST_ARCHS: usize = 1024;

/// The compiler.
pub(crate) struct KernelCompiler {
    functions: CompilerFunctions,
    vendor: &'static VendorRuntime,
    version: [i32; 2],
    /// The architectures that it makes code for, as `sm_90`, where it tells.
    archs: Option<Vec<String>>,
}

impl KernelCompiler {
    /// The compiler of a library, which stays loaded.
    ///
    /// # Errors
    /// A library that lacks a function, or does not say what it compiles for.
    pub(crate) fn new(library: &DriverLibrary, vendor: &'static VendorRuntime) -> Result<KernelCompiler, ProbeError> {
        let functions = CompilerFunctions::of(library, &vendor.compile)?;
        let [mut major, mut minor] = [0; 2];
        // SAFETY: two numbers are written.
        let code = unsafe { (functions.version)(&mut major, &mut minor) };
        library_answer(library, vendor.compile.version, code)?;
        let archs = vendor.archs.as_ref().map(|(prefix, names)| {
            let numbers = archs(library, &ArchFunctions::of(library, names)?, names.count, names.all)?;
            Ok(numbers.into_iter().map(|number| format!("{prefix}{number}")).collect())
        });
        Ok(KernelCompiler { functions, vendor, version: [major, minor], archs: archs.transpose()? })
    }

    /// Its version, as `13.0`.
    pub(crate) fn version(&self) -> String {
        let [major, minor] = self.version;
        format!("{major}.{minor}")
    }

    /// Checks that it makes code for an architecture, where it tells.
    ///
    /// # Errors
    /// One that it does not know, with those that it knows.
    pub(crate) fn check(&self, arch: &str) -> Result<(), DriverError> {
        let Some(archs) = self.archs.as_ref().filter(|archs| !archs.iter().any(|known| known == arch)) else {
            return Ok(());
        };
        let (title, version, known) = (self.vendor.compiler.title, self.version(), archs.join(", "));
        let why = format!(
            "{title} {version} makes code for {known}; install the version that came with this device or later"
        );
        Err(unsupported(format!("code for {arch}"), why))
    }

    /// Compiles a source to code of an architecture. `name` is what it is called in what the compiler says.
    ///
    /// # Errors
    /// What the compiler says.
    pub(crate) fn compile(
        &self,
        name: &str,
        source: &str,
        arch: &str,
        options: &[&str],
    ) -> Result<Vec<u8>, DriverError> {
        let program = CompilerProgram::new(self, name, source)?;
        let options = options.iter().map(|option| (*option).to_owned());
        let arch = self.vendor.arch_option.map(|option| format!("{option}{arch}"));
        let options = options.chain(arch).chain(["-std=c++17".into()]).map(text);
        let options = options.collect::<Result<Vec<CString>, DriverError>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = i32::try_from(pointers.len()).map_err(|e| refused("compile", e.to_string()))?;
        // SAFETY: the program is there, and as many texts as are told, each with a 0 at its end.
        match unsafe { (self.functions.compile)(program.handle, count, pointers.as_ptr()) } {
            0 => program.code(),
            code => {
                let (title, version) = (self.vendor.compiler.title, self.version());
                Err(refused("compile", format!("kernel `{name}`: {title} {version}: {}", program.said(code))))
            }
        }
    }
}

fn library_answer(library: &DriverLibrary, call: &'static str, code: i32) -> Result<(), ProbeError> {
    if code == SUCCESS { Ok(()) } else { Err(ProbeError::Code { path: library.path(), call, code }) }
}

/// The architectures that a compiler knows.
fn archs(
    library: &DriverLibrary,
    functions: &ArchFunctions,
    count_call: &'static str,
    call: &'static str,
) -> Result<Vec<i32>, ProbeError> {
    let mut count = 0;
    // SAFETY: a number is written.
    library_answer(library, count_call, unsafe { (functions.count)(&mut count) })?;
    let Some(length) = usize::try_from(count).ok().filter(|count| (1..=MOST_ARCHS).contains(count)) else {
        let answer = format!("{count} architectures");
        return Err(ProbeError::Nonsense { path: library.path(), call: count_call, answer });
    };
    let mut archs = vec![0; length];
    // SAFETY: as many numbers are written as the compiler has just counted.
    library_answer(library, call, unsafe { (functions.all)(archs.as_mut_ptr()) })?;
    Ok(archs)
}

fn text(of: impl Into<Vec<u8>>) -> Result<CString, DriverError> {
    CString::new(of).map_err(|e| refused("compile", e.to_string()))
}

/// A source in the compiler.
struct CompilerProgram<'a> {
    compiler: &'a KernelCompiler,
    handle: RawHandle,
}

impl<'a> CompilerProgram<'a> {
    fn new(compiler: &'a KernelCompiler, name: &str, source: &str) -> Result<CompilerProgram<'a>, DriverError> {
        let (source, name) = (text(source)?, text(name)?);
        let mut handle = null_mut();
        // SAFETY: both texts end with a 0, and there are no headers; a program is written to `handle`.
        let code =
            unsafe { (compiler.functions.new_program)(&mut handle, source.as_ptr(), name.as_ptr(), 0, null(), null()) };
        if code == 0 {
            Ok(CompilerProgram { compiler, handle })
        } else {
            Err(refused("compile", format!("error {code}")))
        }
    }

    /// Bytes that `call` writes, as many as `length` tells.
    fn bytes(
        &self,
        length: unsafe extern "C" fn(RawHandle, *mut usize) -> i32,
        call: unsafe extern "C" fn(RawHandle, *mut c_char) -> i32,
    ) -> Result<Vec<u8>, i32> {
        let mut count = 0;
        // SAFETY: the program is there; a number is written.
        let told = unsafe { length(self.handle, &mut count) };
        let mut bytes = vec![0u8; if told == 0 { count } else { 0 }];
        // SAFETY: as many bytes are written as the compiler has just told.
        match if told == 0 { unsafe { call(self.handle, bytes.as_mut_ptr().cast()) } } else { told } {
            0 => Ok(bytes),
            code => Err(code),
        }
    }

    /// The code that was made.
    fn code(&self) -> Result<Vec<u8>, DriverError> {
        let f = &self.compiler.functions;
        self.bytes(f.code_bytes, f.code).map_err(|code| refused("compile", format!("no code was given: error {code}")))
    }

    /// What the compiler says of an error.
    fn said(&self, code: i32) -> String {
        let f = &self.compiler.functions;
        let log = self.bytes(f.log_bytes, f.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let log: String = log.trim_end_matches('\0').trim().chars().take(MOST_LOG).collect();
        if code == DOES_NOT_COMPILE { log } else { format!("error {code} {log}") }
    }
}

impl Drop for CompilerProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once.
        unsafe { (self.compiler.functions.drop_program)(&mut self.handle) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may stop at anything
mod tests {
    use super::*;
    use crate::vendor::CudaVendor;
    use yirage_probe::ProbeEnvironment;

    /// The vendor's own: makers' compilers are asked by `tools/dialects/run.sh`.
    fn nvrtc() -> KernelCompiler {
        let vendor = CudaVendor::Nvidia.runtime();
        let library = vendor.compiler.library(&ProbeEnvironment::of_this_process()).unwrap();
        KernelCompiler::new(&library, vendor).unwrap()
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn a_source_becomes_code_and_what_is_wrong_with_one_is_told() {
        let compiler = nvrtc();
        compiler.check("sm_90").unwrap();
        let source = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }";
        let code = compiler.compile("twice", source, "sm_90", &["--fmad=false"]).unwrap();
        assert_eq!(&code[..4], b"\x7fELF");
        let other = compiler.compile("twice", source, "sm_80", &["--fmad=false"]).unwrap();
        assert_ne!(code, other, "code is of an architecture");
        let says =
            |error: DriverError, part: &str| assert!(error.to_string().contains(part), "{part:?} is not in {error}");
        says(
            compiler.compile("k", "extern \"C\" __global__ void k() { y = 1; }", "sm_90", &[]).unwrap_err(),
            "kernel `k`",
        );
        says(compiler.compile("k", "y", "sm_90", &["--no-such-option"]).unwrap_err(), "no-such-option");
        says(compiler.compile("k", "a\0b", "sm_90", &[]).unwrap_err(), "nul byte");
        says(compiler.check("sm_12345").unwrap_err(), "code for sm_12345 is not supported: NVIDIA NVRTC");
        says(compiler.check("unknown").unwrap_err(), "sm_90");
    }
}
