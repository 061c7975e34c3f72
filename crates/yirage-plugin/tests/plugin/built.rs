//! Libraries built by the system's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;
use yirage_plugin::PluginBackend;

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Compiles a library of C into a folder.
pub(crate) fn library(source: &Path, into: &Path, definitions: &[&str]) -> PathBuf {
    let library = into.join("libplugin.so");
    let include = format!("-I{}", root().join("crates/yirage-plugin/include").display());
    let told = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", &include, "-o"];
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    let command = command.args(definitions.iter().map(|name| format!("-D{name}"))).args(told);
    let done = command.arg(&library).arg(source).arg("-ldl").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    library
}

/// A library of this text, without a word on what is not used in it.
pub(crate) fn library_of(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("plugin.c");
    std::fs::write(&source, text).unwrap();
    let library = library(&source, folder.path(), &[]);
    (folder, library)
}

/// Where the emulator's sources lie.
fn emulator() -> PathBuf {
    root().join("crates/yirage-sim/src/emulator/cpp")
}

/// The example in Rust, built by the cargo of these tests, which finds the emulator as well.
pub(crate) fn example_in_rust() -> PluginBackend {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let manifest = root().join("examples/plugin/rust/Cargo.toml");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let told = ["build", "--release", "--locked", "--offline", "--manifest-path"];
        let command = command.args(told).arg(manifest).arg("--target-dir").arg(folder.path());
        let done = command.env("SOFTWARE_EMULATOR_HERE", emulator()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        folder
    });
    PluginBackend::new("software", &folder.path().join("release/libsoftware_device.so")).unwrap()
}

/// The examples in C and in Rust.
pub(crate) fn examples() -> [PluginBackend; 2] {
    [example(), example_in_rust()]
}

/// The example, which finds the emulator.
pub(crate) fn example() -> PluginBackend {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let definition = format!("SOFTWARE_EMULATOR_HERE=\"{}\"", emulator().display());
        library(&root().join("examples/plugin/software_device.c"), folder.path(), &[&definition]);
        folder
    });
    PluginBackend::new("software", &folder.path().join("libplugin.so")).unwrap()
}
