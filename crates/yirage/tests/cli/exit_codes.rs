//! The exit codes of the manual: the page and the help list the same, and each is what such an end has.

use crate::docs::page;
use crate::support::{TINY, path, yirage};
#[cfg(target_os = "linux")]
use crate::support::{root, software_device};

/// The codes of the page's table.
fn documented() -> Vec<i32> {
    let text = page("cli.md");
    let table = text.split("| exit code | meaning |").nth(1).unwrap().split("\n\n").next().unwrap();
    table.lines().filter_map(|row| row.split('|').nth(1)?.trim().parse().ok()).collect()
}

#[test]
fn the_page_and_the_help_list_the_same_codes() {
    let help = yirage(&["--help"]).ran().out.replace('\n', " ");
    let listed = help.split("Exit codes: ").nth(1).unwrap().split(". ").next().unwrap().to_owned();
    let told: Vec<i32> = listed.split(", ").map(|one| one.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(documented(), told);
    assert_eq!(told, [0, 1, 2, 3, 4, 5, 6, 130, 141]);
}

/// 6 has a test of its own, 130 and 141 are those of `interrupt` and `output`.
#[test]
fn every_code_is_what_such_an_end_has() {
    let folder = tempfile::tempdir().unwrap();
    let record = path(&folder.path().join("before.json"));
    let row = serde_json::json!([{"model_filename": TINY.rsplit('/').next().unwrap(), "n_prompt": 4, "n_gen": 0,
        "n_depth": 0, "n_threads": 1, "n_batch": 2048, "avg_ts": 1e12, "samples_ts": [1e12, 1e12, 1e12]}]);
    std::fs::write(&record, row.to_string()).unwrap();
    let bench = ["bench", TINY, "-p", "4", "-n", "0", "-r", "3", "-t", "1", "--compare", &record];
    for (code, kind, arguments) in [
        (0, "", &["version"][..]),
        (1, "failure", &["inspect", "no/such.gguf"]),
        (2, "usage", &["run", TINY, "--temp", "hot"]),
        (3, "unsupported", &["run", TINY, "--prompt-ids", "1", "--backend", "kunlun"]),
        (4, "would_not_fit", &["serve", TINY, "--port", "0", "--kv-memory", "900000"]),
        (5, "slower", &bench),
    ] {
        let ran = yirage(arguments).ran();
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
        let told = yirage(&[arguments, &["--json", "-q"]].concat()).ran();
        assert_eq!(told.code, code, "{arguments:?} --json: {}", told.err);
        let told = told.err.lines().last().map_or(serde_json::Value::Null, |line| serde_json::from_str(line).unwrap());
        let wanted = if code == 0 { serde_json::Value::Null } else { serde_json::json!([code, kind]) };
        let found = if code == 0 { told } else { serde_json::json!([told["error"]["code"], told["error"]["kind"]]) };
        assert_eq!(found, wanted, "{arguments:?}");
    }
}

/// A device that takes the root of nothing computes wrongly what is divided by one.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a compiler of C++"]
fn wrong_results_end_in_six() {
    let (_folder, named) = software_device();
    let arguments = ["verify", "software", "--quick", "--ops", "rms_norm"];
    let emulator = path(&root().join("crates/yirage-sim/src/emulator/cpp"));
    let by = |compiler: &str, more: &[&str]| {
        let call = yirage(&[&arguments, more].concat()).env("YIRAGE_PLUGINS", &named);
        call.env("SOFTWARE_EMULATOR", &emulator).env("CXX", compiler).ran()
    };
    let right = by("c++", &[]);
    assert_eq!(right.code, 0, "{}", right.err);
    let wrong = by("c++ -Dsqrtf=fabsf", &[]);
    assert!(wrong.code == 6 && wrong.out.contains("wrong: rms_norm: 1x64/64"), "{} {}", wrong.out, wrong.err);
    assert!(wrong.err.contains("results on software differ from the reference: rms_norm"), "{}", wrong.err);
    let told = by("c++ -Dsqrtf=fabsf", &["--json", "-q"]);
    let error: serde_json::Value = serde_json::from_str(told.err.lines().last().unwrap()).unwrap();
    assert_eq!(
        (told.code, &error["error"]["code"], &error["error"]["kind"]),
        (6, &6.into(), &"wrong".into()),
        "{error}"
    );
}
