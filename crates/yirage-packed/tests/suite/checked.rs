//! What is compared at an open, what is not compared again, and who cannot talk a store out of it.

use crate::support::{GIB, change, images, key, store, write};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use yirage_packed::{PackedEntry, PackedError, PackedStore, limits};

/// Opens an entry; whether all of it was compared for that.
fn compared(store: &PackedStore, n: u8) -> bool {
    let mut progress = (0, 0);
    let entry = store.open(key(n), &mut |done, total| progress = (progress.0.max(done), total)).unwrap().unwrap();
    assert!(entry.unmarked().is_none(), "{:?}", entry.unmarked());
    let head = progress.1.saturating_sub(progress.0);
    assert!(head < limits::ALIGN, "all but the head is compared: {progress:?}");
    progress.1 > 0
}

/// An entry whose last change is long enough ago, with its mark.
fn marked(store: &PackedStore, n: u8) -> (PathBuf, PathBuf) {
    let path = write(store, key(n), &images());
    assert!(compared(store, n), "nobody has looked at it yet");
    std::thread::sleep(limits::SETTLED + limits::SETTLED / 10);
    // The first look may have come too soon to vouch for it.
    compared(store, n);
    assert!(!compared(store, n), "it was compared in this boot");
    (path, store.folder().join(format!("{}.used", key(n))))
}

#[test]
fn an_entry_is_compared_once_a_boot_and_after_every_change() {
    let (_folder, store) = store(GIB);
    let (path, mark) = marked(&store, 1);
    // The mark says when it was used, and using it leaves the entry as it is.
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let used = store.list().unwrap().entries[0].used;
    assert!(used > before && used <= SystemTime::now() && fs::metadata(&path).unwrap().modified().unwrap() == before);
    // Another boot.
    let text = fs::read_to_string(&mark).unwrap();
    fs::write(&mark, text.replace("boot ", "boot 1")).unwrap();
    assert!(compared(&store, 1) && !compared(&store, 1));
    // A change that is undone, its time included: nobody can undo the time of change.
    for byte in [0x10, 0x10] {
        change(&path, 5000, |b| b ^ byte);
        File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
        let opened = store.open(key(1), &mut |_, _| ());
        assert_eq!(opened.is_err(), fs::read(&path).unwrap()[5000] != images()[1].1.get(904).copied().unwrap_or(0));
    }
    assert!(compared(&store, 1));
    assert_ne!(fs::read_to_string(&mark).unwrap(), text, "the mark of another state");
    // The same bytes in another file.
    std::thread::sleep(limits::SETTLED + limits::SETTLED / 10);
    compared(&store, 1);
    assert!(!compared(&store, 1));
    fs::copy(&path, store.folder().join("copy")).unwrap();
    fs::rename(store.folder().join("copy"), &path).unwrap();
    assert!(compared(&store, 1));
}

#[test]
fn no_mark_but_its_own_vouches_for_an_entry() {
    let (_folder, store) = store(GIB);
    let (_, mark) = marked(&store, 1);
    let text = fs::read_to_string(&mark).unwrap();
    let other = {
        write(&store, key(2), &images());
        std::thread::sleep(limits::SETTLED + limits::SETTLED / 10);
        compared(&store, 2);
        fs::read_to_string(store.folder().join(format!("{}.used", key(2)))).unwrap()
    };
    assert!(other.len() > 100 && other != text);
    for text in [&text[..text.len() - 1], &text[..40], "", &other, &text.replace("checked", "Checked"), &text.repeat(2)]
    {
        fs::write(&mark, text).unwrap();
        assert!(compared(&store, 1), "{text:?}");
        assert!(!compared(&store, 1), "the mark was not renewed behind {text:?}");
    }
    // What is no mark stays as it is, and the entry is compared each time.
    let elsewhere = store.folder().join("elsewhere");
    fs::write(&elsewhere, &text).unwrap();
    type Put = fn(&Path, &Path);
    let puts: [(&str, Put); 5] = [
        ("a text", |mark, _| fs::write(mark, "dear diary").unwrap()),
        ("very long", |mark, _| fs::write(mark, vec![b'y'; 1 << 20]).unwrap()),
        ("a link to a mark", |mark, elsewhere| symlink(elsewhere, mark).unwrap()),
        ("a folder", |mark, _| fs::create_dir(mark).unwrap()),
        ("a pipe", |mark, _| assert!(Command::new("mkfifo").arg(mark).status().unwrap().success())),
    ];
    for (what, put) in puts {
        let _ = fs::remove_file(&mark).or_else(|_| fs::remove_dir(&mark));
        put(&mark, &elsewhere);
        let before = fs::symlink_metadata(&mark).unwrap();
        for _ in 0..2 {
            let mut looked = false;
            let entry = store.open(key(1), &mut |_, _| looked = true).unwrap().unwrap();
            let told = matches!(entry.unmarked(), Some(PackedError::Foreign { path }) if *path == mark);
            assert!(looked && told, "{what}: {:?}", entry.unmarked());
        }
        let after = fs::symlink_metadata(&mark).unwrap();
        assert!(before.file_type() == after.file_type() && before.len() == after.len(), "{what}");
        assert!(store.list().unwrap().foreign.contains(&mark), "{what}");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), text);
    }
}

#[test]
fn an_open_entry_knows_what_happens_to_its_file() {
    let (_folder, store) = store(GIB);
    let path = write(&store, key(1), &images());
    let open = || store.open(key(1), &mut |_, _| ()).unwrap().unwrap();
    let mut entry = open();
    entry.confirm().unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    entry.confirm().unwrap();
    change(&path, 9000, |b| !b);
    for _ in 0..2 {
        assert!(matches!(entry.confirm(), Err(PackedError::Damaged { .. })));
    }
    change(&path, 9000, |b| !b);
    entry.confirm().unwrap();
    fs::remove_file(&path).unwrap();
    entry.confirm().unwrap();
    write(&store, key(1), &images());
    entry.confirm().unwrap();
    let mut cut: PackedEntry = open();
    File::options().write(true).open(&path).unwrap().set_len(10_000).unwrap();
    let error = cut.confirm().unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("length of the file"), "{error}");
    entry.confirm().unwrap();
}
