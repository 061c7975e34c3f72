//! `yirage backend`, as its users run it: each command in both forms, what it keeps, and what a new process sees of that.

use crate::support::{Ran, TINY, keys, path, yirage};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A user with a folder of settings.
struct User(TempDir);

impl User {
    fn new() -> User {
        User(tempfile::tempdir().unwrap())
    }

    fn ran(&self, arguments: &[&str]) -> Ran {
        yirage(arguments).env("XDG_CONFIG_HOME", self.0.path().to_str().unwrap()).ran()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.ran(&[arguments, &["--json"]].concat()).json()
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("yirage/config.toml")
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.0.path().join("yirage")).unwrap();
        fs::write(self.file(), text).unwrap();
    }

    /// The value of an option, and who says so, as another process sees it.
    fn option(&self, name: &str) -> (Value, Value) {
        let explained = self.json(&["config", "explain"]);
        let option = explained["options"].as_array().unwrap().iter().find(|o| o["name"] == name).unwrap();
        (option["value"].clone(), option["origin"].clone())
    }
}

#[test]
fn what_is_set_is_seen_by_a_new_process_until_it_is_reset() {
    let user = User::new();
    let set = user.json(&["backend", "set", "CPU"]);
    assert_eq!((&set["backend"], &set["path"]), (&"cpu".into(), &user.file().to_str().unwrap().into()));
    assert_eq!(user.option("backend"), ("cpu".into(), "file".into()));
    assert!(user.ran(&["backend", "set", "auto"]).out.contains("auto is kept as the backend"));
    assert_eq!(user.option("backend"), ("auto".into(), "file".into()));
    assert_eq!(user.json(&["backend", "reset"])["removed"], true);
    assert_eq!(user.json(&["backend", "reset"])["removed"], false);
    assert_eq!(user.option("backend"), ("auto".into(), "default".into()));
    let ran = yirage(&["backend", "set", "cpu"]).env("XDG_CONFIG_HOME", user.0.path().to_str().unwrap());
    let ran = ran.env("YIRAGE_BACKEND", "auto").ran();
    assert!(ran.code == 0 && ran.err.contains("YIRAGE_BACKEND is set, which beats what is kept"), "{}", ran.err);
}

#[test]
fn a_backend_that_cannot_be_had_changes_nothing() {
    let user = User::new();
    let text = "# mine\nbackend = \"cpu\" # for now\nseed = 3\n";
    user.write(text);
    for (name, code, part) in [("ascend", 3, "not available"), ("warp", 2, "\"warp\" is unknown")] {
        let ran = user.ran(&["backend", "set", name]);
        assert!(ran.code == code && ran.err.contains(part), "{} {}", ran.code, ran.err);
        assert_eq!(fs::read_to_string(user.file()).unwrap(), text);
    }
    assert_eq!(user.ran(&["backend", "set", "auto"]).code, 0);
    assert_eq!(fs::read_to_string(user.file()).unwrap(), text.replace("cpu", "auto"));
}

#[test]
fn advice_is_kept_with_apply_alone_and_used_by_a_new_process() {
    let user = User::new();
    let advice = user.json(&["backend", "optimize"]);
    assert!(advice["written"].is_null() && !user.file().exists());
    let settings = advice["settings"].as_array().unwrap();
    let value = |name: &str| settings.iter().find(|s| s["name"] == name).unwrap()["value"].clone();
    assert!(settings.iter().all(|s| !s["reason"].as_str().unwrap().is_empty()), "{advice}");
    assert_eq!((value("backend"), value("threads")), ("cpu".into(), value("workers")));
    let ran = user.ran(&["backend", "optimize", "--apply"]);
    assert!(ran.code == 0 && ran.out.contains("kept in "), "{}", ran.err);
    assert_eq!(user.option("threads"), (value("threads"), "file".into()));
    assert_eq!(user.option("backend"), ("cpu".into(), "file".into()));
    let kept = user.json(&["backend", "config", "show"]);
    assert!(kept["settings"]["workers"].is_null(), "no option of the command: {kept}");
    let ran = user.ran(&["run", TINY, "--prompt-ids", "1", "-n", "1", "--log-level", "debug"]);
    let threads = format!("(\"threads\", {})", value("threads"));
    assert!(ran.code == 0 && ran.err.contains(&threads), "{threads}: {}", ran.err);
}

#[test]
fn what_was_saved_and_loaded_is_the_same() {
    let user = User::new();
    user.write("seed = 3 # mine\nstop = [\"x\", \"y\"]\nbackend = \"cpu\"\ntop-p = 0.5\n");
    let before = user.json(&["backend", "config", "show"])["settings"].clone();
    for name in ["saved.toml", "saved.json"] {
        let saved = path(&user.0.path().join(name));
        assert_eq!(user.json(&["backend", "config", "save", &saved])["settings"], before);
        let other = User::new();
        let loaded = other.json(&["backend", "config", "load", &saved]);
        assert_eq!((&loaded["settings"], &loaded["unknown"]), (&before, &serde_json::json!([])));
        assert_eq!(other.option("seed"), ("3".into(), "file".into()));
        let kept = other.json(&["backend", "config", "show"])["settings"].clone();
        assert_eq!(kept.as_object().unwrap().len(), before.as_object().unwrap().len());
    }
    let saved = path(&user.0.path().join("saved.toml"));
    assert_eq!(user.ran(&["backend", "config", "load", &saved]).code, 0);
    assert!(fs::read_to_string(user.file()).unwrap().contains("seed = 3 # mine\n"), "what is the same stays as it was");
    assert_eq!(user.json(&["backend", "config", "show"])["settings"], before);
}

#[test]
fn settings_of_others_are_told_and_wrong_ones_refused() {
    let user = User::new();
    let file = user.0.path().join("given.json");
    let load = |text: &str| {
        fs::write(&file, text).unwrap();
        user.ran(&["backend", "config", "load", file.to_str().unwrap()])
    };
    let ran = load("{\"backend\": \"cpu\", \"num_workers\": 8}");
    assert!(ran.code == 0 && ran.err.contains("no option \"num_workers\"; left out"), "{}", ran.err);
    let kept = fs::read_to_string(user.file()).unwrap();
    for (text, code, part) in [
        ("{\"precision\": \"blurry\"}", 2, "expected fast, exact"),
        ("{\"backend\": \"warp\"}", 2, "\"warp\" is unknown"),
        ("{\"seed\": 5, \"backend\": \"ascend\"}", 3, "not available"),
        ("{\"seed\": ", 2, "given.json"),
    ] {
        let ran = load(text);
        assert!(ran.code == code && ran.err.contains(part), "{text}: {} {}", ran.code, ran.err);
        assert_eq!(fs::read_to_string(user.file()).unwrap(), kept, "{text}");
    }
    assert_eq!(user.ran(&["backend", "config", "load", "no/such.json"]).code, 1);
}

#[test]
fn bad_arguments_are_told() {
    for arguments in [
        &["backend"][..],
        &["backend", "config"],
        &["backend", "frob"],
        &["backend", "set"],
        &["backend", "set", "cpu", "cpu"],
        &["backend", "config", "save"],
        &["backend", "benchmark", "--duration", "0"],
        &["backend", "benchmark", "--duration", "soon"],
        &["backend", "benchmark", "warp"],
        &["backend", "info", "--device", "7"],
        &["backend", "info", "--apply"],
        &["backend", "test", "warp"],
    ] {
        let ran = User::new().ran(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert!(!ran.err.is_empty() && ran.out.is_empty(), "{arguments:?}");
    }
    for command in ["info", "optimize", "benchmark", "set", "reset", "config", "test"] {
        let help = User::new().ran(&["backend", command, "--help"]);
        assert!(help.code == 0 && help.out.contains("Usage: yirage backend "), "{}", help.out);
    }
}

#[test]
fn info_tells_the_device_and_its_memory_as_the_system_does() {
    let user = User::new();
    let info = user.json(&["backend", "info"]);
    let device = &info["device"];
    assert_eq!((&info["backend"], &device["backend"]), (&"cpu".into(), &"cpu".into()));
    for key in ["name", "arch", "cores", "capabilities", "facts"] {
        assert!(keys(device).contains(&key), "{key}: {info}");
    }
    let bytes = |key: &str| device[key].as_u64().unwrap();
    assert!(bytes("memory_bytes") <= bytes("total_memory_bytes"), "{info}");
    if let Ok(text) = fs::read_to_string("/proc/meminfo") {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
        let total = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() as f64 * 1024.0;
        let ratio = bytes("total_memory_bytes") as f64 / total;
        assert!((0.95..=1.05).contains(&ratio), "{ratio}: {info}");
    }
    assert!(user.ran(&["backend", "info", "cpu"]).out.starts_with("cpu 0: "));
}

/// Everything that is measured is a finite number above 0, and has the sentence that says how.
pub(crate) fn measure() {
    let user = User::new();
    assert!(user.json(&["backend", "info"])["latency"].is_null());
    let measured = user.json(&["backend", "info", "--measure", "-q"]);
    let limits = measured["limits"].as_array().unwrap();
    let read = |limit: &Value| limit["median"].as_f64().is_some_and(|x| x.is_finite() && x > 0.0);
    assert!(limits.iter().any(|limit| limit["limit"] == "memory read" && read(limit)), "{measured}");
    for limit in limits.iter().chain([&measured["latency"]]) {
        assert!(limit["why"].is_string() || (read(limit) && limit["method"].is_string()), "{limit}");
    }
}

/// What is timed is what the op's work says, for as long as was asked.
pub(crate) fn duration() {
    let ran = User::new().ran(&["backend", "benchmark", "--duration", "0.3", "cpu", "ascend", "--json"]);
    assert!(ran.err.contains("timing: cpu: attention"), "{}", ran.err);
    let value = ran.json();
    assert_eq!(value["seconds"], 0.3);
    let [cpu, ascend] = value["backends"].as_array().unwrap().as_slice() else { panic!("{value}") };
    assert!(ascend["error"].as_str().unwrap().contains("not available"), "{ascend}");
    let ops = cpu["ops"].as_array().unwrap();
    assert_eq!(ops.len(), 6, "{cpu}");
    for op in ops {
        let number = |key: &str| op[key].as_f64().unwrap_or_else(|| panic!("{key}: {op}"));
        assert!(number("median_seconds") > 0.0 && number("steps") >= 1.0);
        let same = |rate: f64, count: f64| (rate / (count / number("median_seconds")) - 1.0).abs() < 1e-9;
        assert!(same(number("bytes_per_second"), number("bytes")), "{op}");
        match op["ops_per_second"].as_f64() {
            Some(rate) => assert!(same(rate, number("ops")), "{op}"),
            None => assert_eq!(number("ops"), 0.0, "{op}"),
        }
    }
    assert_eq!(ops[0]["ops"].as_f64().unwrap(), 2.0 * 1536.0 * 8960.0, "two for each weight");
    let none = User::new().ran(&["backend", "benchmark", "--duration", "0.1", "ascend"]);
    assert!(none.code == 1 && none.out.contains("ascend: failed: "), "{}", none.err);
}

/// The suite passes on the processor; quick, it has fewer cases of the same ops.
pub(crate) fn quick() {
    let run = |more: &[&str]| User::new().json(&[&["backend", "test", "cpu"], more].concat());
    let (quick, all) = (run(&["--quick"]), run(&[]));
    let cases = |value: &Value| value["cases"].as_u64().unwrap();
    assert!(cases(&quick) > 200 && cases(&quick) < cases(&all), "{} {}", cases(&quick), cases(&all));
    for value in [&quick, &all] {
        assert_eq!(value["failures"], serde_json::json!([]));
        let passed = |op: &Value| op["passed"].as_u64().unwrap();
        assert_eq!(value["ops"].as_array().unwrap().iter().map(passed).sum::<u64>(), cases(value));
    }
    assert_eq!(quick["ops"].as_array().unwrap().len(), all["ops"].as_array().unwrap().len());
}
