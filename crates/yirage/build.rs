//! Tells the program which commit it is built from: `BUILD_COMMIT`, with `-dirty` where files were changed. Outside a checkout
//! of this repository, or without git, there is none. It has no name of the program's own variables: `cargo run` would set it
//! for the program, which tells of variables that it does not know.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    if !root.join(".git").exists() {
        return;
    }
    watched(&root).iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .current_dir(&root)
        .output();
    if let Some(output) = described.ok().filter(|output| output.status.success()) {
        println!("cargo::rustc-env=BUILD_COMMIT={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}

/// What changes with a commit, and every source: a change that is in no commit is one too. The index is not among them: git
/// writes it when it is asked for the commit, and the program would be built twice.
fn watched(root: &Path) -> Vec<PathBuf> {
    let git = ["HEAD", "logs/HEAD"].map(|name| root.join(".git").join(name));
    let crates = root.join("crates").read_dir().into_iter().flatten().flatten();
    let sources = crates.flat_map(|entry| ["src", "Cargo.toml"].map(|name| entry.path().join(name)));
    // Cargo takes a path that is not there for one that has changed, each time.
    git.into_iter().chain(sources).chain([root.join("Cargo.lock")]).filter(|path| path.exists()).collect()
}
