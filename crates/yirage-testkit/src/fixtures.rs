//! Files that are made when a test first asks for them, in a folder that later runs find them in.

use crate::weights::fnv1a;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where made files lie: beside the built tests, or among the temporary files if a test runs from elsewhere.
#[must_use]
pub fn root() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let built = program.ancestors().find(|folder| folder.ends_with("deps")).and_then(Path::parent);
    built.map_or_else(|| std::env::temp_dir().join("yirage-testkit"), |built| built.join("testkit"))
}

/// A folder `name` with these files (name and bytes). It is never written again, so do not change what is in it: its place
/// depends on the bytes, and tests of other processes use it at the same time.
#[must_use]
pub fn folder(name: &str, files: &[(&str, Vec<u8>)]) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let hash = files
        .iter()
        .fold(0, |hash, (file, bytes)| fnv1a(file.as_bytes()) ^ fnv1a(bytes).rotate_left(hash as u32 % 64) ^ hash);
    let place = root().join(format!("{hash:016x}")).join(name);
    if place.exists() {
        return place;
    }
    let unique = format!("new-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let fresh = root().join(unique);
    fs::create_dir_all(&fresh).unwrap();
    for (file, bytes) in files {
        let path = fresh.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    if fs::rename(&fresh, &place).is_err() {
        // Another test was first.
        assert!(place.exists(), "cannot make {}", place.display());
        fs::remove_dir_all(&fresh).unwrap();
    }
    place
}
