//! A machine with a maker's library of collectives, built with the system's C++ compiler.
//!
//! Each maker's form is built once, below cargo's folder for tests; each [`FakeCollectives`] has a copy, which is a library of its
//! own: its faults and counts are nobody else's.

use crate::ranks::GroupRank;
use std::ffi::{CString, OsString, c_char, c_void};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use yirage_collectives::{
    CollectiveError, CollectiveVendor, DeviceCollectives, DeviceCommunicator, DeviceSeat, GroupId,
};
use yirage_probe::{DriverLibrary, ProbeEnvironment};

/// How long ranks wait for each other where nothing is wrong.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Whose names and numbers a library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Nccl,
    Mccl,
    Cncl,
    Hccl,
}

impl Maker {
    fn of(vendor: CollectiveVendor) -> Maker {
        match vendor {
            CollectiveVendor::MooreThreads | CollectiveVendor::MetaX => Maker::Mccl,
            CollectiveVendor::Cambricon => Maker::Cncl,
            CollectiveVendor::Ascend => Maker::Hccl,
            _ => Maker::Nccl,
        }
    }

    /// What `fake/names.hpp` knows it by.
    fn definition(self) -> &'static str {
        match self {
            Maker::Nccl => "FAKE_NCCL",
            Maker::Mccl => "FAKE_MCCL",
            Maker::Cncl => "FAKE_CNCL",
            Maker::Hccl => "FAKE_HCCL",
        }
    }
}

/// What a library has counted, as `fake/collectives.cpp` has it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct FakeCollectivesStats {
    /// Now.
    pub(crate) communicators: u64,
    pub(crate) made: u64,
    pub(crate) ended: u64,
    pub(crate) aborted: u64,
    pub(crate) calls: u64,
    /// Of them those within a group of calls.
    pub(crate) grouped: u64,
    pub(crate) groups: u64,
    /// Calls that no program should make.
    pub(crate) wrong: u64,
}

/// A machine with a library.
pub(crate) struct FakeCollectives {
    vendor: CollectiveVendor,
    folder: TempDir,
    library: DriverLibrary,
}

impl FakeCollectives {
    /// A machine with a maker's library.
    pub(crate) fn of(vendor: CollectiveVendor) -> FakeCollectives {
        FakeCollectives::named(vendor, Maker::of(vendor))
    }

    /// A machine with a library that has the file name of one maker's and the functions of another's.
    pub(crate) fn named(vendor: CollectiveVendor, maker: Maker) -> FakeCollectives {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(file_name(vendor));
        fs::copy(built(maker), &file).unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("lib")).unwrap();
        FakeCollectives { vendor, library: DriverLibrary::at(&file).unwrap(), folder }
    }

    /// As in another process, which has made it there.
    pub(crate) fn at(vendor: CollectiveVendor, folder: &Path) -> Arc<DeviceCollectives> {
        vendor.load(&surroundings(folder)).unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn load(&self) -> Result<Arc<DeviceCollectives>, CollectiveError> {
        self.vendor.load(&surroundings(self.folder.path()))
    }

    /// Runs `body` on every rank of a group, each on a thread.
    pub(crate) fn group(&self, ranks: usize, body: impl Fn(&GroupRank) + Sync) {
        let library = self.load().unwrap();
        let id = library.new_id().unwrap();
        std::thread::scope(|scope| {
            for rank in 0..ranks {
                let (library, id, body) = (&library, &id, &body);
                scope.spawn(move || {
                    body(&GroupRank::new(joined(library, id, rank, ranks), streams(&self.library), rank as u32))
                });
            }
        });
    }

    pub(crate) fn stats(&self) -> FakeCollectivesStats {
        let mut stats = FakeCollectivesStats::default();
        // SAFETY: the type is that of `fake/collectives.cpp`, whose fields are those of `FakeCollectivesStats`.
        unsafe {
            let get: unsafe extern "C" fn(*mut FakeCollectivesStats) =
                self.library.function("fakeCollectivesStats").unwrap();
            get(&mut stats);
        }
        stats
    }

    /// Lets the `nth` call of this name from now fail with a code, once.
    pub(crate) fn fail(&self, call: &str, nth: i32, code: i32) {
        let call = CString::new(call).unwrap();
        // SAFETY: the type is that of `fake/collectives.cpp`; the text ends with a 0 and lives through the call.
        unsafe {
            let fail: unsafe extern "C" fn(*const c_char, i32, i32) =
                self.library.function("fakeCollectivesFail").unwrap();
            fail(call.as_ptr(), nth, code);
        }
    }

    /// What the library says that it is.
    pub(crate) fn set_version(&self, version: i32) {
        // SAFETY: the type is that of `fake/collectives.cpp`.
        unsafe {
            let set: unsafe extern "C" fn(i32) = self.library.function("fakeCollectivesVersion").unwrap();
            set(version);
        }
    }

    /// All communicators were ended in order, and no call was wrong.
    pub(crate) fn leaves_nothing(&self) {
        let stats = self.stats();
        assert_eq!((stats.communicators, stats.made, stats.wrong), (0, stats.ended, 0), "{:?}: {stats:?}", self.vendor);
    }

    /// Waits until the library has counted what `is_so` wants.
    pub(crate) fn comes_to(&self, is_so: impl Fn(&FakeCollectivesStats) -> bool) {
        let until = Instant::now() + DEADLINE;
        while !is_so(&self.stats()) {
            assert!(Instant::now() < until, "{:?}", self.stats());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A rank's place where nothing is wrong.
pub(crate) fn joined(library: &Arc<DeviceCollectives>, id: &GroupId, rank: usize, ranks: usize) -> DeviceCommunicator {
    let seat = DeviceSeat { rank, ranks, ordinal: rank as u32 };
    DeviceCommunicator::join(library, id, seat, DEADLINE, || Ok(())).unwrap()
}

/// The streams of a library.
#[derive(Clone, Copy)]
pub(crate) struct RankStreams {
    pub(crate) new: unsafe extern "C" fn(u32) -> *mut c_void,
    pub(crate) wait: unsafe extern "C" fn(*mut c_void, i32) -> i32,
    pub(crate) drop: unsafe extern "C" fn(*mut c_void),
}

pub(crate) fn streams(library: &DriverLibrary) -> RankStreams {
    // SAFETY: the types are those of `fake/streams.cpp`.
    unsafe {
        RankStreams {
            new: library.function("fakeCollectivesNewStream").unwrap(),
            wait: library.function("fakeCollectivesWait").unwrap(),
            drop: library.function("fakeCollectivesDropStream").unwrap(),
        }
    }
}

pub(crate) fn file_name(vendor: CollectiveVendor) -> &'static str {
    match vendor {
        CollectiveVendor::Nvidia | CollectiveVendor::Iluvatar => "libnccl.so.2",
        CollectiveVendor::Amd | CollectiveVendor::Hygon => "librccl.so.1",
        CollectiveVendor::MooreThreads | CollectiveVendor::MetaX => "libmccl.so",
        CollectiveVendor::Cambricon => "libcncl.so",
        CollectiveVendor::Ascend => "libhccl.so",
    }
}

/// Some makers' libraries are taken from below the maker's root alone.
fn surroundings(folder: &Path) -> ProbeEnvironment {
    let names = ["LD_LIBRARY_PATH", "DTK_ROOT", "COREX_HOME"];
    let variables: Vec<(&str, OsString)> = names.map(|name| (name, folder.as_os_str().to_owned())).into();
    ProbeEnvironment::new(folder, variables)
}

/// A maker's library as it was built.
fn built(maker: Maker) -> &'static Path {
    static FILES: [OnceLock<PathBuf>; 4] = [const { OnceLock::new() }; 4];
    FILES[maker as usize].get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake");
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut hasher = DefaultHasher::new();
        files.iter().for_each(|file| fs::read(file).unwrap().hash(&mut hasher));
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = root.join(format!("{}-{:016x}.so", maker.definition(), hasher.finish()));
        if !file.exists() {
            fs::create_dir_all(root).unwrap();
            let made = tempfile::tempdir_in(root).unwrap();
            let made = made.path().join("library.so");
            let sources = files.iter().filter(|file| file.extension() == Some("cpp".as_ref()));
            let program = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
            let told =
                ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared", "-Wl,--no-undefined"];
            let mut command = Command::new(program);
            // Threads of streams may be at work to the end of the process.
            command.args(told).arg("-Wl,-z,nodelete").arg(format!("-D{}", maker.definition())).arg("-o").arg(&made);
            let done = command.args(sources).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            // Another process may have been faster: then its file is as good.
            fs::rename(made, &file).unwrap();
        }
        file
    })
}
