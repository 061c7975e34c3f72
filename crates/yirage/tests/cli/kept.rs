//! No answer depends on kept weights: not on damage, not on what keeps them from being written, not on what happens to
//! their file meanwhile.

use crate::cache::Kept;
use crate::support::{Ran, bedtime, yirage};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Arguments of a short answer that is the same each time.
fn ask<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "--model", model, "--max-tokens", "12", "--temperature", "0", "--ignore-eos", "--prompt", "One"];
    [&run[..], more].concat()
}

/// What the model says without kept weights.
fn answer(model: &str) -> String {
    let ran = yirage(&ask(model, &["--no-weight-cache"])).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out
}

/// Checks that a run gave `want` and said `note`.
fn check(ran: &Ran, want: &str, note: &str, what: &str) {
    assert!(ran.code == 0 && ran.out == want, "{what}: {}: {:?}: {}", ran.code, ran.out, ran.err);
    assert!(ran.err.contains(note), "{what}: {}", ran.err);
}

#[test]
fn a_damaged_entry_is_replaced_and_the_answer_right() {
    let model = bedtime();
    let (kept, want) = (Kept::new(), answer(&model));
    kept.run(&model, &[]).ran();
    let entry = PathBuf::from(kept.entries()[0]["path"].as_str().unwrap());
    let good = fs::read(&entry).unwrap();
    for at in [3, 70, 1000, good.len() / 3, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        // Floats that are no numbers.
        let end = (at + 64).min(bytes.len());
        bytes[at..end].fill(0xff);
        fs::write(&entry, &bytes).unwrap();
        let ran = yirage(&ask(&model, &["--weight-cache", "--weight-cache-dir", &kept.folder()])).ran();
        check(&ran, &want, "repacked weights were made again", &format!("byte {at}"));
        assert!(fs::read(&entry).unwrap() == good, "byte {at}: another entry");
    }
}

#[test]
fn what_keeps_weights_from_being_kept_is_a_note() {
    let model = bedtime();
    let (folder, want) = (tempfile::tempdir().unwrap(), answer(&model));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let at = |path: &Path| path.to_str().unwrap().to_owned();
    let fine = at(&folder.path().join("packed"));
    for (dir, limit) in [(at(&file), "20"), (at(&file.join("below")), "20"), ("/proc/none".into(), "20"), (fine, "0")] {
        let more = ["--weight-cache", "--weight-cache-dir", &dir, "--weight-cache-limit", limit];
        check(&yirage(&ask(&model, &more)).ran(), &want, "repacked weights are not kept", &dir);
    }
}

#[cfg(unix)]
#[test]
fn links_pipes_and_locks_in_the_way_are_a_note() {
    use std::process::Command;
    let model = bedtime();
    let want = answer(&model);
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    for what in ["entry", "lock"] {
        let kept = Kept::new();
        kept.run(&model, &[]).ran();
        let entry = PathBuf::from(kept.entries()[0]["path"].as_str().unwrap());
        let lock = entry.with_file_name("store.lock");
        fs::remove_file(&entry).unwrap();
        fs::remove_file(&lock).unwrap();
        pipe(if what == "entry" { &entry } else { &lock });
        let ran = yirage(&ask(&model, &["--weight-cache", "--weight-cache-dir", &kept.folder()])).ran();
        check(&ran, &want, "not written by yirage, and left alone", what);
    }
}

#[cfg(unix)]
#[test]
fn a_limit_on_files_is_a_note_for_weights_and_an_error_for_results() {
    use crate::support::limited;
    let model = bedtime();
    let (kept, want) = (Kept::new(), answer(&model));
    let ran = limited("-f 16", &ask(&model, &["--weight-cache", "--weight-cache-dir", &kept.folder()])).ran();
    check(&ran, &want, "repacked weights are not kept", "ulimit -f 16");
    assert!(kept.entries().is_empty());
    let out = tempfile::tempfile().unwrap();
    let ran = limited("-f 0", &ask(&model, &["--no-weight-cache"])).output(out).ran();
    assert!(ran.code == 1 && ran.err.contains("standard output: "), "{}: {}", ran.code, ran.err);
}

#[test]
fn a_folder_that_goes_away_meanwhile_is_a_note_at_most() {
    let model = bedtime();
    let (kept, want) = (Kept::new(), answer(&model));
    let folder = kept.folder();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                // Now and then a file appears while it goes.
                let _ = fs::remove_dir_all(&folder);
            }
        });
        for turn in 0..10 {
            let ran = yirage(&ask(&model, &["--weight-cache", "--weight-cache-dir", &folder])).ran();
            check(&ran, &want, "", &format!("turn {turn}"));
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn starts_at_once_answer_all() {
    let model = bedtime();
    let (kept, want) = (Kept::new(), answer(&model));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let ran = yirage(&ask(&model, &["--weight-cache", "--weight-cache-dir", &kept.folder()])).ran();
                check(&ran, &want, "", "one of many");
            });
        }
    });
    assert_eq!(kept.entries().len(), 1);
}

/// An answer whose entry is cut off in the middle of it: exit code, standard output and standard error.
#[cfg(unix)]
fn cut_off(model: &str, json: bool) -> (Option<i32>, String, String) {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Command;
    let kept = Kept::new();
    kept.run(model, &[]).ran();
    let entry = kept.entries()[0]["path"].as_str().unwrap().to_owned();
    let folder = kept.folder();
    let long = ["--context", "30000", "--max-tokens", "29000", "--weight-cache", "--weight-cache-dir", &folder];
    let format = if json { &["--log-level", "debug", "--json"] } else { &["--log-level", "debug"][..] };
    let mut child = yirage(&ask(model, &[&long[..], format].concat())).reading();
    let (mut out, mut err) = (child.stdout.take().unwrap(), BufReader::new(child.stderr.take().unwrap()));
    let (mut said, mut text) = (String::new(), vec![0; if json { 0 } else { 40 }]);
    while !said.contains("packed_weights=Some(") {
        assert!(err.read_line(&mut said).unwrap() > 0, "it ended by itself: {said}");
    }
    out.read_exact(&mut text).unwrap();
    // Stopped meanwhile, so that it is a step that meets what happened.
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    File::options().write(true).open(&entry).unwrap().set_len(4096).unwrap();
    signal("-CONT");
    out.read_to_end(&mut text).unwrap();
    err.read_to_string(&mut said).unwrap();
    let code = child.wait().unwrap().code();
    assert!(said.contains(&format!("{entry}: ")) && said.contains("start again"), "{said}");
    (code, String::from_utf8(text).unwrap(), said)
}

#[cfg(unix)]
#[test]
fn an_entry_that_is_cut_off_in_use_ends_the_answer_in_an_error() {
    let model = bedtime();
    let (code, out, err) = cut_off(&model, false);
    assert_eq!(code, Some(1), "{err}");
    let want = yirage(&ask(&model, &["--max-tokens", "200", "--no-weight-cache"])).ran().out;
    // The line ends where the answer was cut off, which may be behind the space before a word.
    let (said, want) = (out.strip_suffix('\n').unwrap().as_bytes(), want.trim_end().as_bytes());
    let common = said.len().min(want.len());
    assert_eq!(said[..common], want[..common], "{out:?}");
}

#[cfg(unix)]
#[test]
fn an_answer_in_json_that_is_cut_off_says_so() {
    let model = bedtime();
    let (code, out, err) = cut_off(&model, true);
    assert_eq!(code, Some(1), "{err}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["finish_reason"], "error");
    let error: serde_json::Value = serde_json::from_str(err.lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["code"], 1);
}
