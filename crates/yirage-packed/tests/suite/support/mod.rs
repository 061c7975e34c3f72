//! Stores in folders of their own, and entries to put in.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use yirage_packed::{
    NewEntry, PackedEntry, PackedError, PackedKey, PackedStore, PackedWriter, SourceFile, StoredEntry, limits,
};
use yirage_testkit::rng;

pub(crate) const GIB: u64 = 1 << 30;

/// Opens an entry; what is compared is not looked at.
pub(crate) fn open(store: &PackedStore, key: PackedKey) -> Result<Option<PackedEntry>, PackedError> {
    store.open(key, &mut |_, _| ())
}

pub(crate) fn entries(store: &PackedStore) -> Vec<StoredEntry> {
    store.list().unwrap().entries
}

pub(crate) fn key(n: u8) -> PackedKey {
    PackedKey::of(&[&[n]])
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|place| rng::at(seed, place) as u8).collect()
}

/// Images of sizes that meet every edge: nothing, less than a page, a whole range, a range and a byte.
pub(crate) fn images() -> Vec<(String, Vec<u8>)> {
    let sizes = [0, 1, 4096, limits::RANGE_BYTES as usize, limits::RANGE_BYTES as usize + 1, 70_000];
    sizes.iter().enumerate().map(|(i, &n)| (format!("layers.{i}.weight"), pattern(i as u64, n))).collect()
}

pub(crate) fn announced(key: PackedKey, images: &[(String, Vec<u8>)], source: Vec<SourceFile>) -> NewEntry {
    let images = images.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
    NewEntry { key, device: "test 1".into(), source, images }
}

pub(crate) fn fill(mut writer: PackedWriter, images: &[(String, Vec<u8>)]) -> Result<PathBuf, PackedError> {
    while let Some((image, _)) = writer.wants() {
        writer.push(&images[image].1)?;
    }
    writer.finish()
}

pub(crate) fn write(store: &PackedStore, key: PackedKey, images: &[(String, Vec<u8>)]) -> PathBuf {
    fill(store.begin(announced(key, images, Vec::new())).unwrap(), images).unwrap()
}

pub(crate) fn store(limit: u64) -> (TempDir, PackedStore) {
    let folder = tempdir().unwrap();
    let store = PackedStore::new(folder.path().join("packed"), limit);
    (folder, store)
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn change(path: &Path, at: u64, byte: impl Fn(u8) -> u8) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let mut old = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut old).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte(old[0])]).unwrap();
}
