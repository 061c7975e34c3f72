//! Machines in temporary folders, and libraries built for them with the system's C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use yirage_probe::ProbeEnvironment;

/// A machine without anything.
pub(crate) struct Machine {
    root: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        Machine { root: tempfile::tempdir().unwrap() }
    }

    /// Where something lies of which the machine says `absolute`.
    pub(crate) fn path(&self, absolute: &str) -> PathBuf {
        self.root.path().join(absolute.trim_start_matches('/'))
    }

    /// The same, with its folder made.
    pub(crate) fn file(&self, absolute: &str) -> PathBuf {
        let path = self.path(absolute);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// A library made of `fakes/SOURCE` with these definitions.
    pub(crate) fn library(&self, absolute: &str, source: &str, definitions: &[&str]) -> PathBuf {
        let path = self.file(absolute);
        compile(&path, source, &["-shared", "-fPIC"], definitions);
        path
    }

    /// Its surroundings, with no variable set.
    pub(crate) fn surroundings(&self) -> ProbeEnvironment {
        self.with(&[])
    }

    /// Its surroundings with these variables.
    pub(crate) fn with(&self, variables: &[(&str, &str)]) -> ProbeEnvironment {
        ProbeEnvironment::new(self.root.path(), variables.iter().copied())
    }
}

/// Compiles `fakes/SOURCE` to `path`.
pub(crate) fn compile(path: &Path, source: &str, options: &[&str], definitions: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probe/fakes").join(source);
    let definitions = definitions.iter().map(|definition| format!("-D{definition}"));
    let ran = Command::new("cc").args(options).args(definitions).arg("-o").arg(path).arg(source).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// NVIDIA's names.
pub(crate) const CUDA: &[&str] = &[
    "START=cuInit",
    "VERSION=cuDriverGetVersion",
    "COUNT=cuDeviceGetCount",
    "DEVICE=cuDeviceGet",
    "NAME=cuDeviceGetName",
    "MEMORY=cuDeviceTotalMem_v2",
    "ATTRIBUTE=cuDeviceGetAttribute",
    "MAJOR=8",
    "MINOR=9",
];
