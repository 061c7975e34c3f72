//! Machines with devices in software: `fake/`, built with the system's C++ compiler into the libraries that a maker has.
//!
//! They are built when they are first asked for, and kept for as long as neither a source nor the compiler changes, below cargo's
//! folder for tests. Each [`FakeMachine`] has a copy of them, which is a runtime of its own.

use std::ffi::{CString, OsString, c_char, c_void};
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
pub(crate) struct FakeNpuStats {
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

impl FakeNpuStats {
    /// Whether nothing is held, and nothing was done wrong.
    pub(crate) fn is_clean(&self) -> bool {
        FakeNpuStats { runs: 0, copies: 0, ..*self } == FakeNpuStats::default()
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

    pub(crate) fn stats(&self) -> FakeNpuStats {
        let mut stats = FakeNpuStats::default();
        // SAFETY: the type is that of `fakeStats` in `fake/machine.cpp`.
        let get: unsafe extern "C" fn(*mut FakeNpuStats) = unsafe { self.runtime().function("fakeStats") }.unwrap();
        // SAFETY: the fields are those of `fake/machine.hpp`.
        unsafe { get(&mut stats) };
        stats
    }

    /// Puts the maker's collectives beside its runtime: they stand in the runtime's streams.
    pub(crate) fn with_collectives(&self) -> FakeHccl {
        let name = match self.vendor {
            NpuVendor::Ascend => "libhccl.so",
            NpuVendor::Cambricon => "libcncl.so",
        };
        let file = self.folder.path().join(name);
        fs::copy(collectives(self.vendor), &file).unwrap();
        let library = DriverLibrary::at(&file).unwrap();
        let runtime = self.runtime();
        // SAFETY: the types are those of `fakeEnqueue` and `fakeMemory` in `fake/machine.cpp`, and of `fakeCollectivesDriver` and
        // `fakeCollectivesMemory` in `../yirage-collectives/tests/fake/streams.cpp`.
        unsafe {
            let enqueue: Enqueue = runtime.function("fakeEnqueue").unwrap();
            let lend: unsafe extern "C" fn(Enqueue) = library.function("fakeCollectivesDriver").unwrap();
            lend(enqueue);
            let memory: Memory = runtime.function("fakeMemory").unwrap();
            let lend: unsafe extern "C" fn(Memory) = library.function("fakeCollectivesMemory").unwrap();
            lend(memory);
        }
        FakeHccl(library)
    }

    fn runtime(&self) -> DriverLibrary {
        match self.vendor {
            NpuVendor::Ascend => ASCEND.library(&self.surroundings()).unwrap(),
            NpuVendor::Cambricon => CNRT.library(&self.surroundings()).unwrap(),
        }
    }
}

/// Puts work into a stream.
type Enqueue = unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> i32;
/// The bytes at an address of a stream's device.
type Memory = unsafe extern "C" fn(*mut c_void, *const c_void, u64) -> *mut c_void;

/// A vendor's library of collectives, in the shape of HCCL or CNCL.
pub(crate) struct FakeHccl(DriverLibrary);

impl FakeHccl {
    /// What the library has counted, as `../yirage-collectives/tests/fake/collectives.cpp` has it.
    fn stats(&self) -> [u64; 8] {
        let mut stats = [0; 8];
        // SAFETY: the type is that of `fakeCollectivesStats`, which writes eight numbers.
        unsafe {
            let get: unsafe extern "C" fn(*mut u64) = self.0.function("fakeCollectivesStats").unwrap();
            get(stats.as_mut_ptr());
        }
        stats
    }

    /// Calls of collectives and messages.
    pub(crate) fn calls(&self) -> u64 {
        self.stats()[4]
    }

    /// All communicators were ended in order, and no call was wrong.
    pub(crate) fn leaves_nothing(&self) {
        let [now, made, ended, .., wrong] = self.stats();
        assert_eq!((now, made, wrong), (0, ended, 0), "{:?}", self.stats());
    }

    /// Lets the `nth` call of this name from now fail with `code`, once.
    pub(crate) fn fail(&self, call: &str, nth: i32, code: i32) {
        let call = CString::new(call).unwrap();
        // SAFETY: the type is that of `fakeCollectivesFail`; the text ends with a 0 and lives through the call.
        unsafe {
            let fail: unsafe extern "C" fn(*const c_char, i32, i32) = self.0.function("fakeCollectivesFail").unwrap();
            fail(call.as_ptr(), nth, code);
        }
    }
}

/// A maker's library of collectives as it was built.
fn collectives(vendor: NpuVendor) -> &'static Path {
    static FILES: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    FILES[usize::from(vendor == NpuVendor::Cambricon)].get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-collectives/tests/fake");
        let mut files: Vec<PathBuf> = fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut hasher = DefaultHasher::new();
        files.iter().for_each(|file| fs::read(file).unwrap().hash(&mut hasher));
        let name = if vendor == NpuVendor::Ascend { "FAKE_HCCL" } else { "FAKE_CNCL" };
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = root.join(format!("collectives-{name}-{:016x}.so", hasher.finish()));
        if !file.exists() {
            fs::create_dir_all(root).unwrap();
            let made = tempfile::tempdir_in(root).unwrap();
            let made = made.path().join("made.so");
            let told = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared", "-Wl,-z,nodelete"];
            let mut arguments: Vec<OsString> = told.map(OsString::from).into();
            arguments.extend([format!("-D{name}").into(), "-o".into(), made.clone().into()]);
            let sources = files.into_iter().filter(|file| file.extension() == Some("cpp".as_ref()));
            arguments.extend(sources.map(OsString::from));
            let done = ran(&arguments);
            assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
            // Another process may have been faster: then its file is as good.
            fs::rename(made, &file).unwrap();
        }
        file
    })
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
