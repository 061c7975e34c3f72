//! Entries on a real disk: what is written is what is mapped, and whatever is not whole is found out.
//! A program of its own: a test ends a writer that is this program again.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "suite/support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use support::{GIB, announced, change, entries, fill, images, key, names, open, pattern, store, write};
use tempfile::tempdir;
use yirage_mmap::FileStamp;
use yirage_packed::{Image, PackedError, PackedHeader, PackedStore, SourceFile, verify};
use yirage_testkit::skipped;

#[test]
fn what_is_written_is_mapped() {
    let (_folder, store) = store(GIB);
    assert!(open(&store, key(1)).unwrap().is_none() && entries(&store).is_empty());
    let images = images();
    let path = write(&store, key(1), &images);
    assert_eq!(path, store.path(key(1)));
    let entry = open(&store, key(1)).unwrap().unwrap();
    for (name, bytes) in &images {
        let (file, range) = entry.image(name).unwrap();
        assert!(range.start.is_multiple_of(4096) && file[range] == bytes[..], "{name}");
    }
    assert!(entry.image("layers.9.weight").is_none());
    let total: u64 = images.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert_eq!(entry.header().image_bytes(), total);
    assert_eq!(verify(&path).unwrap(), fs::metadata(&path).unwrap().len());
    let listed = entries(&store);
    assert_eq!((listed.len(), listed[0].key, listed[0].bytes), (1, key(1), fs::metadata(&path).unwrap().len()));
    assert_eq!(listed[0].header.as_ref().unwrap(), entry.header());
    assert!(open(&store, key(2)).unwrap().is_none());
}

#[test]
fn a_mapping_outlives_the_entry() {
    let (_folder, store) = store(GIB);
    let images = images();
    write(&store, key(1), &images);
    let entry = open(&store, key(1)).unwrap().unwrap();
    assert_eq!(store.clear().unwrap().files, 1);
    assert!(open(&store, key(1)).unwrap().is_none());
    let (file, range) = entry.image("layers.4.weight").unwrap();
    assert!(file[range] == images[4].1[..]);
    // A new one of the same name leaves the old mapping as it is.
    let other: Vec<_> = images.iter().map(|(name, bytes)| (name.clone(), vec![7; bytes.len()])).collect();
    write(&store, key(1), &other);
    let (file, range) = entry.image("layers.3.weight").unwrap();
    assert!(file[range] == images[3].1[..]);
}

#[test]
fn no_byte_of_the_head_can_change_unseen() {
    let (_folder, store) = store(GIB);
    let path = write(&store, key(1), &[("w".into(), pattern(1, 5000))]);
    let good = fs::read(&path).unwrap();
    let length = u64::from_le_bytes(good[16..24].try_into().unwrap()) as usize;
    for at in 0..64 + length {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&path, &bad).unwrap();
        let error = open(&store, key(1)).unwrap_err();
        assert!(matches!(error, PackedError::Header { .. } | PackedError::Version { .. }), "byte {at}: {error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
    for length in [0, 1, 63, 64, 100, 64 + length, good.len() - 1, good.len() + 1] {
        let mut bad = good.clone();
        bad.resize(length, 0);
        fs::write(&path, &bad).unwrap();
        assert!(matches!(open(&store, key(1)), Err(PackedError::Header { .. })), "{length} bytes");
        assert!(verify(&path).is_err());
    }
}

#[test]
fn versions_and_names_of_others_are_told() {
    let (_folder, store) = store(GIB);
    let path = write(&store, key(1), &images());
    fs::rename(&path, store.path(key(2))).unwrap();
    let error = open(&store, key(2)).unwrap_err().to_string();
    assert!(error.contains("key: expected") && error.contains(&key(1).to_string()), "{error}");
    change(&store.path(key(2)), 8, |_| 9);
    assert!(matches!(open(&store, key(2)), Err(PackedError::Version { found: 9, known: 2, .. })));
    assert!(entries(&store)[0].header.is_err());
}

#[test]
fn a_changed_byte_anywhere_is_found_at_open() {
    let (_folder, store) = store(GIB);
    let path = write(&store, key(1), &images());
    let header = open(&store, key(1)).unwrap().unwrap().header().clone();
    let of_image = |at: u64| header.images.iter().find(|i| (i.offset..i.offset + i.bytes).contains(&at));
    let edges =
        |image: &Image| [image.offset - 1, image.offset, image.offset + image.bytes - 1, image.offset + image.bytes];
    let end = header.file_bytes();
    for at in header.images.iter().flat_map(edges).filter(|&at| at < end) {
        change(&path, at, |b| b ^ 16);
        for error in [open(&store, key(1)).unwrap_err(), verify(&path).unwrap_err()] {
            assert!(error.is_damage() && error.to_string().contains(&path.display().to_string()), "{error}");
            match error {
                PackedError::Damaged { image, first, end, .. } => {
                    assert!((first..end).contains(&at) && of_image(at).is_some_and(|of| of.name == image));
                }
                PackedError::Gap { first, end, .. } if of_image(at).is_none() => assert!((first..end).contains(&at)),
                other => panic!("byte {at}: {other}"),
            }
        }
        change(&path, at, |b| b ^ 16);
        assert!(open(&store, key(1)).unwrap().is_some(), "byte {at}");
    }
}

#[test]
fn an_unfinished_entry_is_none() {
    let (_folder, store) = store(GIB);
    let images = images();
    let mut writer = store.begin(announced(key(1), &images, Vec::new())).unwrap();
    writer.push(&images[1].1).unwrap();
    assert!(open(&store, key(1)).unwrap().is_none() && entries(&store).is_empty());
    assert!(store.list().unwrap().unfinished_bytes > 0);
    // What is being written stays when the rest goes, and is nobody else's.
    assert_eq!(store.clear().unwrap().files, 0);
    assert!(matches!(store.begin(announced(key(1), &images, Vec::new())), Err(PackedError::Busy { .. })));
    drop(writer);
    assert_eq!(names(store.folder()), ["store.lock"]);
    let mut writer = store.begin(announced(key(1), &images, Vec::new())).unwrap();
    assert!(matches!(writer.push(&images[2].1), Err(PackedError::Unannounced { image: 1, at: 0, bytes: 4096, .. })));
    assert!(matches!(writer.finish(), Err(PackedError::Unannounced { .. })));
    assert_eq!(names(store.folder()), ["store.lock"]);
}

#[test]
fn one_of_many_writes() {
    let (_folder, store) = store(GIB);
    let images = images();
    let (wrote, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let begun = store.begin(announced(key(1), &images, Vec::new()));
                // Nobody ends before all have tried.
                barrier.wait();
                match begun {
                    Ok(writer) => {
                        fill(writer, &images).unwrap();
                        wrote.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(PackedError::Busy { .. }) => {
                        busy.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(other) => panic!("{other}"),
                }
            });
        }
    });
    assert_eq!((wrote.into_inner(), busy.into_inner()), (1, 7));
    assert!(verify(&store.path(key(1))).is_ok());
    assert_eq!(names(store.folder()).len(), 2);
}

#[test]
fn the_entry_used_longest_ago_goes_first() {
    let images = [("w".to_owned(), pattern(3, 100_000))];
    let (_folder, roomy) = store(GIB);
    let one = fs::metadata(write(&roomy, key(0), &images)).unwrap().len();
    roomy.clear().unwrap();
    let store = PackedStore::new(roomy.folder().to_path_buf(), 3 * one);
    let long_ago = |n: u8, seconds: u64| {
        let file = File::options().append(true).open(store.path(key(n))).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    for n in 0..3 {
        write(&store, key(n), &images);
        long_ago(n, 1000 - u64::from(n));
    }
    // The oldest one is used again, so the second goes.
    open(&store, key(0)).unwrap().unwrap();
    write(&store, key(3), &images);
    let there: Vec<bool> = (0..4).map(|n| store.path(key(n)).exists()).collect();
    assert_eq!(there, [true, false, true, true]);
    assert_eq!(entries(&store).last().unwrap().key, key(2));
    let small = PackedStore::new(store.folder().to_path_buf(), one - 1);
    let error = small.begin(announced(key(9), &images, Vec::new())).unwrap_err();
    assert!(matches!(error, PackedError::OverLimit { wanted, limit, .. } if (wanted, limit) == (one, one - 1)));
    assert_eq!(entries(&store).len(), 3, "nothing goes for what cannot come");
}

#[test]
fn a_folder_that_cannot_be_written_to_is_an_error_that_names_it() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let store = PackedStore::new(file.join("packed"), GIB);
    let error = store.begin(announced(key(1), &images(), Vec::new())).unwrap_err();
    assert!(matches!(error, PackedError::Io { .. }) && error.to_string().contains("packed"), "{error}");
    assert!(open(&store, key(1)).unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn entries_of_a_read_only_folder_are_used() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, store) = store(GIB);
    let images = images();
    write(&store, key(1), &images);
    let set = |mode| fs::set_permissions(store.folder(), fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    let refused = File::create(store.folder().join("probe")).is_err();
    assert!(open(&store, key(1)).unwrap().is_some());
    let begun = store.begin(announced(key(2), &images, Vec::new())).map(drop);
    set(0o755);
    if refused {
        assert!(matches!(begun, Err(PackedError::Io { .. })), "{begun:?}");
    } else {
        skipped::note("a read-only folder", "this user may write to them");
    }
}

#[test]
fn a_source_that_changes_meanwhile_gives_no_entry() {
    let (folder, store) = store(GIB);
    let (model, images) = (folder.path().join("model.gguf"), images());
    fs::write(&model, "weights").unwrap();
    let source = vec![SourceFile::new(&model, FileStamp::read(&model).unwrap()).unwrap()];
    assert!(source[0].is_unchanged());
    fill(store.begin(announced(key(1), &images, source.clone())).unwrap(), &images).unwrap();
    assert_eq!(entries(&store)[0].header.as_ref().unwrap().source, source);
    // Other bytes, the same length, and the old time set again: the time of change cannot be.
    let old = fs::metadata(&model).unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&model, "WEIGHTS").unwrap();
    File::options().append(true).open(&model).unwrap().set_modified(old).unwrap();
    if cfg!(unix) {
        assert!(!source[0].is_unchanged());
        let error = fill(store.begin(announced(key(2), &images, source)).unwrap(), &images).unwrap_err();
        assert!(matches!(error, PackedError::SourceChanged { .. }), "{error}");
        assert!(open(&store, key(2)).unwrap().is_none());
    }
}

/// The child of the next test: writes until it is ended.
#[test]
#[ignore = "run by a_writer_that_is_killed_leaves_no_entry"]
fn child_that_never_finishes() {
    let folder = std::env::var_os("YIRAGE_TEST_PACKED_FOLDER").expect("a folder from the test that starts this one");
    let store = PackedStore::new(folder.into(), GIB);
    let images = [("w".to_owned(), pattern(1, 12 << 20))];
    let mut writer = store.begin(announced(key(1), &images, Vec::new())).unwrap();
    writer.push(&images[0].1).unwrap();
    fs::write(store.folder().join("begun"), "").unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_writer_that_is_killed_leaves_no_entry() {
    let (_folder, store) = store(GIB);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_never_finishes", "--ignored"])
        .env("YIRAGE_TEST_PACKED_FOLDER", store.folder())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !store.folder().join("begun").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let images = images();
    assert!(matches!(store.begin(announced(key(1), &images, Vec::new())), Err(PackedError::Busy { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(store.list().unwrap().unfinished_bytes > 0, "it left what it had");
    assert!(open(&store, key(1)).unwrap().is_none() && entries(&store).is_empty());
    // The next writer takes its place and its room.
    write(&store, key(1), &images);
    assert_eq!(store.list().unwrap().unfinished_bytes, 0);
    assert!(verify(&store.path(key(1))).is_ok());
}

/// A head that another program wrote, in another language, by the description of the format.
#[test]
fn a_head_by_another_writer_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/packed_header/two_images.bin");
    let bytes = fs::read(path).unwrap();
    let header = PackedHeader::parse(&bytes, 12_345, "two_images").unwrap();
    assert_eq!(
        header.images.iter().map(|i| (i.offset, i.bytes)).collect::<Vec<_>>(),
        [(4096, 70_000 % 4096), (8192, 4153)]
    );
    assert_eq!((header.source[0].modified, header.device.as_str()), (-5, "cpu “tiles”"));
    assert_eq!(PackedHeader::parse(&header.print(), header.file_bytes(), "again").unwrap(), header);
}
