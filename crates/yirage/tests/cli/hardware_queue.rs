//! The one call that whoever has a device makes (`tools/hardware/accelerator.sh`), on makers' libraries in software: every step ends
//! well and in time, and what is packed says which program ran on which device of which driver, when.

use crate::support::bedtime;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A maker's libraries, each with its sources; the one with memory and streams is named as their runtime.
type FakeLibraries = (&'static str, [(&'static str, &'static [&'static str]); 3]);

const ASCEND: FakeLibraries = (
    "libascendcl.so",
    [
        ("libascendcl.so", &["machine.cpp", "settings.cpp", "ascend/runtime.cpp"]),
        ("libnnopbase.so", &["beside.cpp", "ascend/objects.cpp"]),
        ("libopapi.so", &["beside.cpp", "elements.cpp", "ascend/operators.cpp"]),
    ],
);
const CAMBRICON: FakeLibraries = (
    "libcnrt.so",
    [
        ("libcndrv.so", &["settings.cpp", "cambricon/driver.cpp"]),
        ("libcnrt.so", &["machine.cpp", "settings.cpp", "cambricon/runtime.cpp"]),
        ("libcnnl.so", &["beside.cpp", "elements.cpp", "cambricon/descriptions.cpp", "cambricon/operators.cpp"]),
    ],
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Builds the libraries that `yirage-npu` is tested with into a folder.
fn build((runtime, libraries): FakeLibraries, folder: &Path) {
    let sources = root().join("crates/yirage-npu/tests/fake");
    for (library, names) in libraries {
        let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        command.args(["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared", "-Wl,-z,nodelete"]);
        command.arg(format!("-DRUNTIME_LIBRARY=\"{runtime}\"")).arg("-o").arg(folder.join(library));
        let done = command.args(names.iter().map(|name| sources.join(name))).arg("-ldl").output().unwrap();
        assert!(done.status.success(), "{library}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

fn json(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", file.display()))
}

/// What the call leaves for a backend whose libraries lie in a folder, unpacked from what travels back.
fn certificate(backend: &str, libraries: FakeLibraries) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    build(libraries, folder.path());
    let (model, out) = (bedtime(), folder.path().join("out"));
    let mut call = Command::new("bash");
    call.arg(root().join("tools/hardware/accelerator.sh")).args([env!("CARGO_BIN_EXE_yirage"), backend]);
    call.arg(&out).arg(&model).env("VERIFY_MODEL", &model).env("LD_LIBRARY_PATH", folder.path());
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HF_HOME"] {
        call.env(name, folder.path().join("home"));
    }
    let done = call.env("HF_HUB_OFFLINE", "1").env("YIRAGE_WEIGHT_CACHE", "off").output().unwrap();
    let steps = fs::read_to_string(out.join("steps.txt")).unwrap();
    assert!(done.status.success(), "{steps}\n{}", String::from_utf8_lossy(&done.stderr));
    let unpacked = tempfile::tempdir().unwrap();
    let packed = folder.path().join("out.tar.gz");
    assert!(Command::new("tar").arg("-xzf").arg(packed).arg("-C").arg(unpacked.path()).status().unwrap().success());
    unpacked
}

#[test]
#[ignore = "needs a compiler of C++, and a minute"]
fn one_call_brings_back_what_a_device_can_do() {
    for (backend, libraries, chip) in [("ascend", ASCEND, "Ascend910B3"), ("cambricon", CAMBRICON, "MLU370-S4")] {
        let folder = certificate(backend, libraries);
        let file = |name: &str| folder.path().join("out").join(name);
        let steps = fs::read_to_string(file("steps.txt")).unwrap();
        let seconds = |line: &str| line.split(" after ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
        assert_eq!(steps.lines().count(), 7, "{steps}");
        assert!(steps.lines().filter_map(seconds).sum::<u64>() < 600, "{steps}");
        let record = json(&file("verify.json"));
        let told = ["version", "commit", "features", "system", "machine"].map(|fact| &record["build"][fact]);
        assert!(told.iter().all(|fact| !fact.is_null()), "{told:?}");
        assert!(record["date"].as_str().unwrap().ends_with('Z'), "{record}");
        let device = &record["device"];
        assert_eq!((&device["backend"], &device["ordinal"]), (&backend.into(), &0.into()));
        assert!(device["name"].as_str().unwrap().starts_with(chip), "{device}");
        assert!(device["driver_version"].is_string() || device["sdk_version"].is_string(), "{device}");
        assert_eq!(record["suite"]["failed"], serde_json::json!([]));
        assert_eq!(record["model"]["name"], Path::new(&bedtime()).file_name().unwrap().to_str().unwrap());
        assert!(json(&file("doctor.json")).is_object() && json(&file("devices.json")).is_object());
        let bench = fs::read_to_string(file("bench.json")).unwrap();
        let rates: Vec<Value> = bench.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!rates.is_empty() && rates.iter().all(|rate| rate["devices"] == format!("{backend} 0")), "{bench}");
        let answers = ["answer-cpu.txt", "answer.txt", "answer-warm.txt"].map(|name| fs::read(file(name)).unwrap());
        assert!(!answers[0].is_empty() && answers.iter().all(|answer| *answer == answers[0]));
    }
}
