//! Machines with devices in software: `fake/`, built with the system's C++ compiler into the libraries that a maker has.
//!
//! They are built when they are first asked for, and kept for as long as neither a source nor the compiler changes, below cargo's
//! folder for tests. Each [`FakeMachine`] has a copy of them, which is a runtime of its own.

use std::ffi::{CString, OsString, c_char};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;
use yirage_npu::NpuVendor;
use yirage_probe::families::{ASCEND, CNRT};
use yirage_probe::{DriverLibrary, ProbeEnvironment};

/// A library with its sources.
type FakeLibrary = (&'static str, &'static [&'static str]);

/// CANN's.
const OF_ASCEND: [FakeLibrary; 3] = [
    ("libascendcl.so", &["machine.cpp", "settings.cpp", "ascend/runtime.cpp"]),
    ("libnnopbase.so", &["beside.cpp", "ascend/objects.cpp"]),
    ("libopapi.so", &["beside.cpp", "elements.cpp", "ascend/operators.cpp"]),
];
/// Neuware's.
const OF_CAMBRICON: [FakeLibrary; 3] = [
    ("libcndrv.so", &["settings.cpp", "cambricon/driver.cpp"]),
    ("libcnrt.so", &["machine.cpp", "settings.cpp", "cambricon/runtime.cpp"]),
    ("libcnnl.so", &["beside.cpp", "elements.cpp", "cambricon/descriptions.cpp", "cambricon/operators.cpp"]),
];

/// The libraries of a maker, and the one of them that has the memory and the streams.
fn libraries(vendor: NpuVendor) -> (&'static [FakeLibrary; 3], &'static str) {
    match vendor {
        NpuVendor::Ascend => (&OF_ASCEND, "libascendcl.so"),
        NpuVendor::Cambricon => (&OF_CAMBRICON, "libcnrt.so"),
    }
}

/// What the libraries have counted, as `fake/machine.hpp` has it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the libraries write all of them, and each test reads those that it is about")]
pub(crate) struct FakeStats {
    /// Bytes of device memory that are held.
    pub(crate) bytes: u64,
    pub(crate) buffers: u64,
    pub(crate) host_buffers: u64,
    /// Contexts, and handles of operators' libraries.
    pub(crate) contexts: u64,
    pub(crate) streams: u64,
    pub(crate) events: u64,
    pub(crate) tensors: u64,
    /// Descriptions of numbers and operators.
    pub(crate) descriptions: u64,
    /// Executors that were neither run nor given back.
    pub(crate) executors: u64,
    /// Operators that have run.
    pub(crate) runs: u64,
    pub(crate) copies: u64,
    /// Calls that broke their prototype's contract.
    pub(crate) violations: u64,
    /// Operators and copies that failed.
    pub(crate) faults: u64,
}

impl FakeStats {
    /// Whether nothing is held, and nothing was done wrong.
    pub(crate) fn is_clean(&self) -> bool {
        FakeStats { runs: 0, copies: 0, ..*self } == FakeStats::default()
    }
}

/// A machine with libraries of its own.
pub(crate) struct FakeMachine {
    vendor: NpuVendor,
    folder: TempDir,
}

impl FakeMachine {
    /// A machine. What it can be told stands in `fake/settings.hpp`: `("devices", "2")`.
    pub(crate) fn new(vendor: NpuVendor, settings: &[(&str, &str)]) -> FakeMachine {
        let machine = FakeMachine { vendor, folder: tempfile::tempdir().unwrap() };
        let lines: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(machine.folder.path().join("settings"), lines.concat()).unwrap();
        for (library, _) in libraries(vendor).0 {
            fs::copy(built(vendor).join(library), machine.folder.path().join(library)).unwrap();
        }
        machine
    }

    /// The same without a library.
    pub(crate) fn without(self, library: &str) -> FakeMachine {
        fs::remove_file(self.folder.path().join(library)).unwrap();
        self
    }

    pub(crate) fn surroundings(&self) -> ProbeEnvironment {
        let folder = self.folder.path();
        ProbeEnvironment::new(folder, [("LD_LIBRARY_PATH", folder.as_os_str().to_owned())])
    }

    /// Lets the `nth` call of this name from now, counted from 1, fail with `code`, once. `operator` and `copy` name what the
    /// device runs. With 0 for `nth`, what was asked for before is forgotten.
    pub(crate) fn fail(&self, call: &str, nth: i32, code: i32) {
        let call = CString::new(call).unwrap();
        // SAFETY: the type is that of `fakeFail` in `fake/machine.cpp`.
        let fail: unsafe extern "C" fn(*const c_char, i32, i32) =
            unsafe { self.runtime().function("fakeFail") }.unwrap();
        // SAFETY: the text ends with a 0; the fake keeps a copy.
        unsafe { fail(call.as_ptr(), nth, code) };
    }

    pub(crate) fn stats(&self) -> FakeStats {
        let mut stats = FakeStats::default();
        // SAFETY: the type is that of `fakeStats` in `fake/machine.cpp`.
        let get: unsafe extern "C" fn(*mut FakeStats) = unsafe { self.runtime().function("fakeStats") }.unwrap();
        // SAFETY: the fields are those of `fake/machine.hpp`.
        unsafe { get(&mut stats) };
        stats
    }

    fn runtime(&self) -> DriverLibrary {
        match self.vendor {
            NpuVendor::Ascend => ASCEND.library(&self.surroundings()).unwrap(),
            NpuVendor::Cambricon => CNRT.library(&self.surroundings()).unwrap(),
        }
    }
}

/// The folder with a maker's libraries as they were built.
fn built(vendor: NpuVendor) -> &'static Path {
    static FOLDERS: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    FOLDERS[usize::from(vendor == NpuVendor::Cambricon)].get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = root.join(format!("fake-{vendor:?}-{:016x}", fingerprint()));
        if !folder.exists() {
            fs::create_dir_all(root).unwrap();
            let made = tempfile::tempdir_in(root).unwrap();
            let (libraries, runtime) = libraries(vendor);
            libraries.iter().for_each(|library| build(*library, runtime, made.path()));
            // Another process may have been faster: then its folder is as good.
            if fs::rename(made.path(), &folder).is_ok() {
                let _ = made.keep();
            }
        }
        folder
    })
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake")
}

/// Of all files and of the compiler.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    ran(&["--version".into()]).stdout.hash(&mut hasher);
    let listed = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = [sources(), sources().join("ascend"), sources().join("cambricon")];
    let mut files: Vec<PathBuf> = folders.into_iter().flat_map(listed).filter(|path| path.is_file()).collect();
    files.sort();
    files.iter().for_each(|file| (file.file_name(), fs::read(file).unwrap()).hash(&mut hasher));
    hasher.finish()
}

fn build((library, names): FakeLibrary, runtime: &str, folder: &Path) {
    let told = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared", "-Wl,-z,nodelete", "-o"];
    let mut arguments: Vec<OsString> = told.map(OsString::from).into();
    arguments.push(folder.join(library).into());
    arguments.push(format!("-DRUNTIME_LIBRARY=\"{runtime}\"").into());
    arguments.extend(names.iter().map(|name| sources().join(name).into()));
    arguments.push("-ldl".into());
    let done = ran(&arguments);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// `$CXX`, or `c++`.
fn ran(arguments: &[OsString]) -> Output {
    let program = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
    Command::new(program).args(arguments).output().unwrap()
}
