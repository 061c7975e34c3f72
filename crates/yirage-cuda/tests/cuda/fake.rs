//! Machines with devices in software, NVIDIA's or those of a vendor whose driver has the same functions under other names:
//! `fake/` and the emulator's grid, built with the system's C++ compiler.
//!
//! A vendor's libraries are built when they are first asked for, and kept for as long as neither a source nor the compiler
//! changes, below cargo's folder for tests. Each [`FakeCuda`] has a copy of the driver, which is a driver of its own: its
//! devices, faults and counts are nobody else's.

use std::ffi::{CString, OsString, c_char, c_void};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use yirage_probe::families::{COREX, CUDA, HIP, MACA, MUSA};
use yirage_probe::{DriverLibrary, Family, ProbeEnvironment};

/// Sources that are compiled by themselves: one is linked to every kernel, the other to both libraries.
const ALONE: [&str; 2] = ["module.cpp", "vendor.cpp"];

/// Headers and options that every source of kernels is compiled with.
const OF_KERNELS: [&str; 6] = ["module.hpp", "emulator.hpp", "cuda.hpp", "instructions.hpp", "hip.hpp", "options"];

/// Whose names the functions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FakeVendor {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Hip,
    /// Moore Threads'.
    Musa,
    /// Iluvatar's: NVIDIA's, in a folder of their own.
    Corex,
    /// MetaX's: driver and compiler are one library.
    Maca,
}

impl FakeVendor {
    fn family(self) -> &'static Family {
        match self {
            FakeVendor::Cuda => &CUDA,
            FakeVendor::Hip => &HIP,
            FakeVendor::Musa => &MUSA,
            FakeVendor::Corex => &COREX,
            FakeVendor::Maca => &MACA,
        }
    }

    fn driver(self) -> &'static str {
        match self {
            FakeVendor::Cuda | FakeVendor::Corex => "libcuda.so.1",
            FakeVendor::Hip => "libamdhip64.so.6",
            FakeVendor::Musa => "libmusa.so.1",
            FakeVendor::Maca => "libmcruntime.so",
        }
    }

    fn compiler(self) -> &'static str {
        match self {
            FakeVendor::Cuda => "libnvrtc.so.13",
            FakeVendor::Hip => "libhiprtc.so.6",
            FakeVendor::Musa => "libmtrtc.so",
            FakeVendor::Corex => "libnvrtc.so",
            FakeVendor::Maca => "libmcruntime.so",
        }
    }

    /// What `fake/api.hpp` knows it by.
    fn definition(self) -> &'static str {
        match self {
            FakeVendor::Cuda => "FAKE_VENDOR_CUDA",
            FakeVendor::Hip => "FAKE_VENDOR_HIP",
            FakeVendor::Musa => "FAKE_VENDOR_MUSA",
            FakeVendor::Corex => "FAKE_VENDOR_COREX",
            FakeVendor::Maca => "FAKE_VENDOR_MACA",
        }
    }
}

/// What a fake driver has counted, as `fake/control.hpp` has it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the driver writes all of them, and each test reads those that it is about")]
pub(crate) struct FakeCudaStats {
    /// Bytes of device memory that are held, as they were asked for.
    pub(crate) bytes: u64,
    pub(crate) buffers: u64,
    pub(crate) host_buffers: u64,
    pub(crate) streams: u64,
    pub(crate) events: u64,
    pub(crate) modules: u64,
    pub(crate) graphs: u64,
    /// Graphs that were instantiated.
    pub(crate) executables: u64,
    /// Primary contexts that are retained.
    pub(crate) contexts: u64,
    /// The most bytes that were held at once.
    pub(crate) peak_bytes: u64,
    /// Kernels that have run, those of graphs among them.
    pub(crate) launches: u64,
    /// Copies and fills that have run.
    pub(crate) copies: u64,
    pub(crate) graph_launches: u64,
    /// Captures that were begun.
    pub(crate) captures: u64,
    /// Things that a context still had when it was released for the last time.
    pub(crate) leaks: u64,
    /// Buffers beside which something was written, found when they were freed.
    pub(crate) overruns: u64,
    /// Kernels and copies that failed.
    pub(crate) faults: u64,
    /// Kernels that have run and might have begun early.
    pub(crate) early_launches: u64,
}

/// A machine with a driver of its own.
pub(crate) struct FakeCuda {
    vendor: FakeVendor,
    folder: TempDir,
}

impl FakeCuda {
    /// A machine with NVIDIA's devices. What it can be told stands in `fake/settings.hpp`: `("FAKE_CUDA_DEVICES", "2")`.
    pub(crate) fn new(settings: &[(&str, &str)]) -> FakeCuda {
        FakeCuda::of(FakeVendor::Cuda, settings)
    }

    /// A machine with a vendor's devices.
    pub(crate) fn of(vendor: FakeVendor, settings: &[(&str, &str)]) -> FakeCuda {
        let folder = tempfile::tempdir().unwrap();
        // Groups that are on a device together take a stack for each of their threads. The last of a name holds.
        let few = [("FAKE_CUDA_MULTIPROCESSORS", "3")];
        let all = few.iter().filter(|_| vendor == FakeVendor::Cuda).chain(settings);
        let lines: Vec<String> = all.map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(folder.path().join("settings"), lines.concat()).unwrap();
        let driver = vendor.driver();
        fs::copy(libraries(vendor).join(driver), folder.path().join(driver)).unwrap();
        be_a_root(folder.path());
        if driver == vendor.compiler() {
            // The compiler looks for its headers and objects where its library lies.
            for file in files(libraries(vendor)) {
                let own = folder.path().join(file.file_name().unwrap());
                if !own.exists() {
                    std::os::unix::fs::symlink(file, own).unwrap();
                }
            }
        }
        FakeCuda { vendor, folder }
    }

    /// Its surroundings: the driver and the compiler.
    pub(crate) fn surroundings(&self) -> ProbeEnvironment {
        self.with(&[self.folder.path(), libraries(self.vendor)])
    }

    /// The same, where compiled kernels are kept in a folder.
    pub(crate) fn surroundings_keeping(&self, folder: &Path) -> ProbeEnvironment {
        let own = std::env::join_paths([self.folder.path(), libraries(self.vendor)]).unwrap();
        let variables = [("LD_LIBRARY_PATH", own), ("YIRAGE_KERNEL_CACHE", folder.as_os_str().to_owned())];
        ProbeEnvironment::new(self.folder.path(), variables)
    }

    /// The driver alone.
    pub(crate) fn surroundings_without_compiler(&self) -> ProbeEnvironment {
        self.with(&[self.folder.path()])
    }

    fn with(&self, folders: &[&Path]) -> ProbeEnvironment {
        let variables: Vec<(&str, OsString)> = match self.vendor {
            // Its libraries are taken from below roots alone, of which its variables name as many as there are folders.
            FakeVendor::Corex => {
                let roots = ["COREX_HOME", "COREX_ROOT"].into_iter().zip(folders);
                roots.map(|(name, folder)| (name, folder.as_os_str().to_owned())).collect()
            }
            _ => vec![("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap())],
        };
        ProbeEnvironment::new(self.folder.path(), variables)
    }

    /// Lets the `nth` call of this name, which is the vendor's, from now, counted from 1, fail with `code`, once. `kernel` and
    /// `copy` name what the device runs, whose fault then is the context's. With 0 for `nth`, what was asked for before is
    /// forgotten.
    pub(crate) fn fail(&self, call: &str, nth: i32, code: i32) {
        let call = CString::new(call).unwrap();
        // SAFETY: the type is that of `fakeCudaFail` in `fake/control.cpp`.
        let fail: unsafe extern "C" fn(*const c_char, i32, i32) =
            unsafe { self.library().function("fakeCudaFail") }.unwrap();
        // SAFETY: the text ends with a 0 and lives through the call.
        unsafe { fail(call.as_ptr(), nth, code) };
    }

    /// What the driver has counted.
    pub(crate) fn stats(&self) -> FakeCudaStats {
        let mut stats = FakeCudaStats::default();
        // SAFETY: the type is that of `fakeCudaStats` in `fake/control.cpp`.
        let get: unsafe extern "C" fn(*mut FakeCudaStats) =
            unsafe { self.library().function("fakeCudaStats") }.unwrap();
        // SAFETY: the fields are those of `fake/control.hpp`.
        unsafe { get(&mut stats) };
        stats
    }

    /// Puts the maker's collectives beside its driver: they stand in the driver's streams.
    pub(crate) fn with_collectives(&self) -> FakeNccl {
        let name = match self.vendor {
            FakeVendor::Cuda | FakeVendor::Corex => "libnccl.so.2",
            FakeVendor::Hip => "librccl.so.1",
            FakeVendor::Musa | FakeVendor::Maca => "libmccl.so",
        };
        let file = self.folder.path().join(name);
        fs::copy(collectives(name == "libmccl.so"), &file).unwrap();
        let library = DriverLibrary::at(&file).unwrap();
        // SAFETY: the types are those of `fakeCudaEnqueue` in `fake/streams.cpp`, and of `fakeCollectivesDriver` in
        // `../yirage-collectives/tests/fake/streams.cpp`.
        unsafe {
            let enqueue: Enqueue = self.library().function("fakeCudaEnqueue").unwrap();
            let lend: unsafe extern "C" fn(Enqueue) = library.function("fakeCollectivesDriver").unwrap();
            lend(enqueue);
        }
        FakeNccl(library)
    }

    fn library(&self) -> DriverLibrary {
        self.vendor.family().library(&self.surroundings()).unwrap()
    }
}

/// Puts work into a stream.
type Enqueue = unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> i32;

/// A vendor's library of collectives, in the shape of NCCL.
pub(crate) struct FakeNccl(DriverLibrary);

impl FakeNccl {
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

/// A library of collectives as it was built, with NCCL's names or with those of MCCL.
fn collectives(of_mccl: bool) -> &'static Path {
    static FILES: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    FILES[usize::from(of_mccl)].get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-collectives/tests/fake");
        let mut hasher = DefaultHasher::new();
        files(&folder).iter().for_each(|file| fs::read(file).unwrap().hash(&mut hasher));
        let (root, name) = (Path::new(env!("CARGO_TARGET_TMPDIR")), if of_mccl { "FAKE_MCCL" } else { "FAKE_NCCL" });
        let file = root.join(format!("collectives-{name}-{:016x}.so", hasher.finish()));
        if !file.exists() {
            fs::create_dir_all(root).unwrap();
            let made = tempfile::tempdir_in(root).unwrap();
            let sources = files(&folder).into_iter().filter(|file| file.extension() == Some("cpp".as_ref()));
            let told = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared", "-Wl,-z,nodelete"];
            let told = told.map(str::to_owned).into_iter().chain([format!("-D{name}"), "-o".into(), "made.so".into()]);
            run(told.chain(sources.map(|file| file.display().to_string())).collect(), made.path());
            // Another process may have been faster: then its file is as good.
            fs::rename(made.path().join("made.so"), &file).unwrap();
        }
        file
    })
}

/// The folder with a vendor's libraries as they were built.
fn libraries(vendor: FakeVendor) -> &'static Path {
    static FOLDERS: [OnceLock<PathBuf>; 5] = [const { OnceLock::new() }; 5];
    FOLDERS[vendor as usize].get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = root.join(format!("fake-{}-{:016x}", vendor.family().name, fingerprint()));
        if !folder.exists() {
            fs::create_dir_all(root).unwrap();
            let made = tempfile::tempdir_in(root).unwrap();
            build(vendor, made.path());
            // Another process may have been faster: then its folder is as good.
            if fs::rename(made.path(), &folder).is_ok() {
                let _ = made.keep();
            }
        }
        folder
    })
}

fn sources() -> [PathBuf; 2] {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    [own.join("tests/fake"), own.join("../yirage-sim/src/emulator/cpp")]
}

/// Of all files and of the compiler.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    ran(&["--version".into()], Path::new(".")).stdout.hash(&mut hasher);
    for folder in sources() {
        for file in files(&folder) {
            (file.file_name(), fs::read(&file).unwrap()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The libraries, and what the compiler compiles and links kernels with.
fn build(vendor: FakeVendor, folder: &Path) {
    let [fake, emulator] = sources();
    let (of_compiler, of_driver) = parts_of_libraries(&fake);
    // All files of a part are compiled as one: the headers of the system, which they share, are most of what is read.
    for (part, files) in [("compiler.cpp", of_compiler), ("driver.cpp", of_driver)] {
        let included = files.iter().map(|file| format!("#include \"{}\"\n", file.display())).collect::<String>();
        fs::write(folder.join(part), included).unwrap();
    }
    let whole = ["driver.cpp", "compiler.cpp"].map(|part| folder.join(part));
    let all: Vec<PathBuf> =
        whole.into_iter().chain([emulator.join("grid.cpp")]).chain(ALONE.map(|name| fake.join(name))).collect();
    on_all_processors(&all, |source| {
        let include = [&fake, &emulator].map(|folder| format!("-I{}", folder.display()));
        let told = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-U_FORTIFY_SOURCE", "-pthread", "-c", "-o"];
        let told = include.into_iter().chain([format!("-D{}", vendor.definition())]).chain(told.map(str::to_owned));
        run(told.chain([object(source), source.display().to_string()]).collect(), folder);
    });
    // What the vendor's devices are, and what its compiler knows.
    let libraries = if vendor.driver() == vendor.compiler() {
        vec![(vendor.driver(), vec!["driver.o", "compiler.o", "vendor.o"])]
    } else {
        vec![(vendor.compiler(), vec!["compiler.o", "vendor.o"]), (vendor.driver(), vec!["driver.o", "vendor.o"])]
    };
    for (library, objects) in libraries {
        // Threads of streams may be at work to the end of the process.
        let told = ["-shared", "-Wl,-z,nodelete", "-Wl,--no-undefined", "-pthread", "-o", library];
        run(told.into_iter().chain(objects).chain(["-ldl"]).map(str::to_owned).collect(), folder);
    }
    for name in OF_KERNELS {
        let from = [&fake, &emulator].map(|folder| folder.join(name)).into_iter().find(|file| file.exists()).unwrap();
        fs::copy(from, folder.join(name)).unwrap();
    }
    fs::create_dir(folder.join("images")).unwrap();
    be_a_root(folder);
}

/// Makes a folder that has libraries also the root of an installation that has them.
fn be_a_root(folder: &Path) {
    std::os::unix::fs::symlink(".", folder.join("lib")).unwrap();
}

/// The sources of a vendor's compiler of kernels, and those of its driver.
fn parts_of_libraries(fake: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let name = |file: &Path| file.file_name().unwrap().to_string_lossy().into_owned();
    let is_of_a_part = |file: &PathBuf| name(file).ends_with(".cpp") && !ALONE.contains(&name(file).as_str());
    files(fake).into_iter().filter(is_of_a_part).partition(|file| name(file).starts_with("nvrtc"))
}

fn object(source: &Path) -> String {
    format!("{}.o", source.file_stem().unwrap().to_string_lossy())
}

fn on_all_processors(all: &[PathBuf], task: impl Fn(&Path) + Sync) {
    let (next, task) = (&AtomicUsize::new(0), &task);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(move || {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    task(one);
                }
            });
        }
    });
}

fn run(arguments: Vec<String>, folder: &Path) {
    let done = ran(&arguments, folder);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// `$CXX`, or `c++`, in a folder.
fn ran(arguments: &[String], folder: &Path) -> Output {
    let program = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}
