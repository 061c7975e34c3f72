//! Whatever else lies in the folder is left alone, whatever it is called.

use crate::support::{GIB, announced, entries, fill, images, key, names, open, store, write};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use yirage_packed::{PackedError, PackedStore};

/// Things that are not ours, under names that only ours should have and others.
fn foreign(store: &PackedStore, elsewhere: &Path) -> Vec<PathBuf> {
    fs::write(elsewhere, "YIRPACK\0 somebody's own").unwrap();
    let at = |name: String| store.folder().join(name);
    let (a, b, c, d) = (key(11), key(12), key(13), key(14));
    let mut paths = Vec::new();
    let mut put = |name: String, how: &dyn Fn(&Path)| {
        how(&at(name.clone()));
        paths.push(at(name));
    };
    put(format!("{a}.packed"), &|path| fs::write(path, "a letter").unwrap());
    put(format!("{b}.packed"), &|path| symlink(elsewhere, path).unwrap());
    put(format!("{c}.packed"), &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()));
    put(format!("{d}.packed"), &|path| fs::create_dir(path).unwrap());
    put(format!("{a}.used"), &|path| fs::write(path, "a letter").unwrap());
    put(format!("{a}.1-0.new"), &|path| fs::write(path, "a letter").unwrap());
    put(format!("{a}.x.new"), &|path| fs::write(path, "").unwrap());
    put(format!("{b}.7-0.new"), &|path| symlink(elsewhere, path).unwrap());
    put("letters.packed".into(), &|path| fs::write(path, "YIRPACK\0").unwrap());
    put("README".into(), &|path| fs::write(path, "").unwrap());
    paths.sort();
    paths
}

#[test]
fn it_is_named_and_never_touched() {
    let (folder, store) = store(GIB);
    write(&store, key(1), &images());
    open(&store, key(1)).unwrap().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    let paths = foreign(&store, &elsewhere);
    let contents = store.list().unwrap();
    assert_eq!(contents.entries.iter().map(|entry| entry.key).collect::<Vec<_>>(), [key(1)]);
    assert_eq!(contents.foreign, paths);
    // Room is made of entries only, and a writer leaves what is in its way.
    let one = contents.entries[0].bytes;
    let small = PackedStore::new(store.folder().to_path_buf(), one);
    fill(small.begin(announced(key(2), &images(), Vec::new())).unwrap(), &images()).unwrap();
    assert_eq!(entries(&store).iter().map(|entry| entry.key).collect::<Vec<_>>(), [key(2)]);
    for taken in [12, 13, 14] {
        assert!(open(&store, key(taken)).unwrap().is_none());
        let begun = store.begin(announced(key(taken), &images(), Vec::new()));
        assert!(matches!(begun, Err(PackedError::Foreign { .. })), "{begun:?}");
    }
    let removed = store.clear().unwrap();
    assert_eq!((removed.files, removed.bytes), (1, one));
    assert_eq!(store.list().unwrap().foreign, paths);
    assert_eq!(names(store.folder()).len(), paths.len(), "marks and lock are gone with the entries");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "YIRPACK\0 somebody's own");
    assert_eq!(store.clear().unwrap().files, 0);
}

#[test]
fn a_lock_that_is_none_is_an_error_and_stays() {
    type Put = fn(&Path);
    let puts: [Put; 3] = [
        |path| symlink("/dev/zero", path).unwrap(),
        |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        |path| fs::create_dir(path).unwrap(),
    ];
    for put in puts {
        let (_folder, store) = store(GIB);
        fs::create_dir_all(store.folder()).unwrap();
        put(&store.folder().join("store.lock"));
        let begun = store.begin(announced(key(1), &images(), Vec::new()));
        assert!(matches!(begun, Err(PackedError::Foreign { .. })), "{begun:?}");
        assert_eq!((store.clear().unwrap().files, names(store.folder())), (0, vec!["store.lock".to_owned()]));
    }
}

#[test]
fn a_lock_that_somebody_holds_does_not_hold_us() {
    let (_folder, store) = store(GIB);
    write(&store, key(1), &images());
    let lock = File::open(store.folder().join("store.lock")).unwrap();
    fs4::FileExt::lock(&lock).unwrap();
    let begun = store.begin(announced(key(2), &images(), Vec::new()));
    assert!(matches!(begun, Err(PackedError::Busy { .. })), "{begun:?}");
    assert!(open(&store, key(1)).unwrap().is_some());
}
