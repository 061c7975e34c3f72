//! What the environment and the configuration say, where that makes no sense.

use crate::support::{Ran, TINY, yirage};
use std::time::{Duration, Instant};

const RUN: [&str; 6] = ["run", TINY, "--prompt-ids", "1", "-n", "1"];

fn check(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let value = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    check(&yirage(&RUN).env_os("YIRAGE_SEED", value).ran(), 2, &["YIRAGE_SEED", "not UTF-8"]);
    check(&yirage(&RUN).env_os("OMP_NUM_THREADS", value).ran(), 0, &["OMP_NUM_THREADS", "not used"]);
}

#[test]
fn a_variable_that_is_no_number_is_named() {
    check(&yirage(&RUN).env("YIRAGE_MAX_TOKENS", "many").ran(), 0, &[]);
    check(&yirage(&RUN[..4]).env("YIRAGE_MAX_TOKENS", "many").ran(), 2, &["YIRAGE_MAX_TOKENS", "many"]);
    check(&yirage(&RUN).env("OMP_NUM_THREADS", "many").ran(), 0, &["OMP_NUM_THREADS", "many", "not used"]);
}

#[test]
fn variables_of_others_are_said_once_and_never_when_quiet() {
    let said = |arguments: &[&str]| {
        let ran = yirage(arguments).env("YIRAGE_OTHER_TOOL", "1").env("YIRAGE_EMPTY", "").ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    let loud = said(&RUN);
    assert!(loud.matches("YIRAGE_OTHER_TOOL").count() == 1 && !loud.contains("YIRAGE_EMPTY"), "{loud}");
    assert_eq!(said(&[&RUN[..], &["-q"]].concat()), "");
}

#[test]
fn without_a_home_nothing_lands_in_the_working_folder() {
    let homeless = |arguments: &[&str]| {
        let names = ["HOME", "USERPROFILE", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"];
        let run = names.into_iter().fold(yirage(arguments), |run, name| run.env(name, ""));
        run.env("YIRAGE_WEIGHT_CACHE", "on").ran()
    };
    // A place for weights is no condition of an answer.
    check(&homeless(&RUN), 0, &["not kept", "HOME is not set", "--weight-cache-dir"]);
    check(&homeless(&["cache", "list"]), 2, &["HOME is not set"]);
    check(&homeless(&[&RUN[..], &["--no-weight-cache"]].concat()), 0, &[]);
}

#[test]
fn the_usual_configuration_is_named_where_it_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("yirage/config.toml")).unwrap();
    let ran = yirage(&RUN).env("XDG_CONFIG_HOME", folder.path().to_str().unwrap()).ran();
    check(&ran, 1, &["yirage/config.toml", "a folder", "read at every start", "--config"]);
}

#[cfg(unix)]
#[test]
fn configurations_that_are_no_files_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let link = folder.path().join("zero.toml");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    for (path, kind) in [(&pipe, "a pipe"), (&link, "a character device")] {
        let began = Instant::now();
        let ran = yirage(&[&RUN[..], &["--config", path.to_str().unwrap()]].concat()).ran();
        check(&ran, 1, &[path.to_str().unwrap(), kind]);
        assert!(began.elapsed() < Duration::from_secs(30), "it waited");
    }
}
