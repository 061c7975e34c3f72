//! Names the build of the kernels, for measurements that hold for these alone: a hash of their source, of the compiler, and
//! of what it was told.
#![allow(clippy::print_stdout)] // where cargo reads

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The kernels, and what divides their work.
const SOURCES: [&str; 2] = ["src", "../yirage-cpu-kernels/src"];
/// Variables of cargo that change the code that is made.
const SETTINGS: [&str; 4] = ["OPT_LEVEL", "TARGET", "CARGO_CFG_TARGET_FEATURE", "CARGO_ENCODED_RUSTFLAGS"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for sources in SOURCES {
        println!("cargo::rerun-if-changed={sources}");
        collect(Path::new(sources), &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::default();
    for file in &files {
        hash.add(file.as_os_str().as_encoded_bytes());
        hash.add(&fs::read(file)?);
    }
    let rustc = env::var_os("RUSTC").ok_or_else(|| io::Error::other("cargo sets RUSTC"))?;
    hash.add(&Command::new(rustc).arg("-vV").output()?.stdout);
    for name in SETTINGS {
        hash.add(env::var_os(name).unwrap_or_default().as_encoded_bytes());
    }
    println!("cargo::rustc-env=YIRAGE_CPU_BUILD={:016x}", hash.0);
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The 64-bit hash of Fowler, Noll and Vo, 1a.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes, and their number, so that two texts are not taken for one.
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
