//! Which backend computes, who says so, and what is said of those that cannot.

#[cfg(target_os = "linux")]
use crate::support::software_device;
use crate::support::{Ran, TINY, keys, yirage};
use serde_json::Value;

const RUN: [&str; 6] = ["run", TINY, "--prompt-ids", "1", "-n", "1"];

fn check(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
}

/// A flag and a variable mean the same.
fn with_backend(name: &str) -> [Ran; 2] {
    let flag = yirage(&[&RUN[..], &["--backend", name]].concat()).ran();
    [flag, yirage(&RUN).env("YIRAGE_BACKEND", name).ran()]
}

#[test]
fn a_backend_that_is_not_here_is_3_with_reason_remedy_and_list() {
    for (name, known_as) in [("ascend", "ascend"), ("npu", "ascend"), ("kunlun", "kunlun"), ("metal", "mps")] {
        for ran in with_backend(name) {
            let head = format!("the backend {known_as} is not available: ");
            check(&ran, 3, &[&head, "available here: cpu", "yirage devices"]);
        }
    }
}

#[test]
fn an_unknown_backend_is_2_with_all_names() {
    for ran in with_backend("warp") {
        check(&ran, 2, &["\"warp\" is unknown", "auto, cuda, ascend, cambricon", "mps", "cpu"]);
    }
}

#[test]
fn auto_is_the_default_and_takes_what_computes_here() {
    let explained = yirage(&["config", "explain", "--json"]).json();
    let options = explained["options"].as_array().unwrap();
    assert_eq!(options.iter().find(|o| o["name"] == "backend").unwrap()["value"], "auto");
    let debug = |more: &[&str]| {
        let ran = yirage(&[&RUN[..], more, &["--log-level", "debug"]].concat()).ran();
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err
    };
    for chosen in [debug(&[]), debug(&["--backend", "auto"]), debug(&["--backend", "CPU"])] {
        assert!(chosen.contains("backend=\"cpu\""), "{chosen}");
    }
    assert!(debug(&["--backend", "reference"]).contains("backend=\"reference\""));
}

#[test]
fn devices_have_ten_facts_and_twelve_flags() {
    let value = yirage(&["devices", "--json"]).json();
    let cpu = &value["devices"][0];
    let facts = ["backend", "ordinal", "name", "arch", "memory_bytes", "total_memory_bytes", "cores"];
    for name in facts.into_iter().chain(["driver_version", "sdk_version", "facts", "capabilities", "software"]) {
        assert!(keys(cpu).contains(&name), "{name}: {cpu}");
    }
    let flags = keys(&cpu["capabilities"]);
    assert!(flags.len() == 12 && flags.contains(&"sparse_2_4") && flags.contains(&"flash_attention"), "{flags:?}");
    assert_eq!((&cpu["backend"], &cpu["capabilities"]["fp32"]), (&"cpu".into(), &true.into()));
    for backend in value["unavailable"].as_array().unwrap() {
        assert!(backend["aliases"].is_array() && backend["devices"].is_array(), "{backend}");
        assert!(!backend["remedy"].as_str().unwrap().is_empty(), "{backend}");
    }
}

/// A driver that leaves a file behind when it is loaded, and has a device.
#[cfg(target_os = "linux")]
const DRIVER: &str = r#"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) {
    const char *path = getenv("LOADED");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) fclose(file);
}
int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "Loopback %d", device) < 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)8 << (30 + device); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 8 : 9 + device; return 0; }
"#;

#[cfg(target_os = "linux")]
#[test]
fn devices_of_vendors_are_told_and_their_libraries_left_alone_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let (source, mark) = (folder.path().join("driver.c"), folder.path().join("loaded"));
    std::fs::write(&source, DRIVER).unwrap();
    for name in ["libcuda.so.1", "libvulkan.so.1"] {
        let mut cc = std::process::Command::new("cc");
        let ran = cc.args(["-shared", "-fPIC", "-o"]).arg(folder.path().join(name)).arg(&source).output();
        assert!(ran.as_ref().is_ok_and(|ran| ran.status.success()), "{ran:?}");
    }
    let with_driver = |arguments: &[&str]| {
        let run = yirage(arguments).env("LD_LIBRARY_PATH", folder.path().to_str().unwrap());
        run.env("LOADED", mark.to_str().unwrap()).env("CUDA_VISIBLE_DEVICES", "5")
    };
    check(&with_driver(&RUN).ran(), 0, &[]);
    assert!(!mark.exists(), "the default loads no library of a device");
    let value = with_driver(&["devices", "--json"]).json();
    assert!(mark.exists());
    let broken = value["unavailable"].as_array().unwrap().iter().find(|b| b["backend"] == "vulkan").unwrap();
    assert!(broken["why"].as_str().unwrap().contains("no function vkEnumerateInstanceVersion"), "{broken}");
    let device = value["devices"].as_array().unwrap().iter().find(|device| device["backend"] == "cuda").unwrap();
    assert_eq!((&device["arch"], &device["capabilities"]["fp8"]), (&"sm_89".into(), &true.into()));
    assert_eq!((&device["sdk_version"], &device["facts"]["physical_device"]), (&"12.4".into(), &"5".into()));
    assert_eq!((&device["memory_bytes"], &device["total_memory_bytes"]), (&Value::Null, &(8_u64 << 30).into()));
    let text = with_driver(&["devices"]).ran().out;
    assert!(text.contains("cuda 0: Loopback 0 (sm_89)") && text.contains("memory: 8.0 GiB, free: not known"), "{text}");
    check(
        &with_driver(&[&RUN[..], &["--backend", "nvidia"]].concat()).ran(),
        3,
        &["no function cuDevicePrimaryCtxRetain", "update it"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_program_is_linked_with_no_makers_library() {
    let ran = std::process::Command::new("ldd").arg(env!("CARGO_BIN_EXE_yirage")).output().unwrap();
    let linked = String::from_utf8_lossy(&ran.stdout).to_ascii_lowercase();
    assert!(ran.status.success() && linked.contains("libc."), "{linked}");
    for library in ["cuda", "nvrtc", "amdhip", "hsa-runtime", "musa", "mcruntime", "ascend", "cndrv", "cnrt", "vulkan"]
    {
        assert!(!linked.contains(library), "{library}: {linked}");
    }
}

/// The example of a plug-in, which says what its device is without a compiler at hand.
#[cfg(target_os = "linux")]
#[test]
fn a_library_that_is_named_is_a_backend() {
    let (_folder, named) = software_device();
    let with = |arguments: &[&str], emulator: &str| {
        yirage(arguments).env("YIRAGE_PLUGINS", &named).env("SOFTWARE_EMULATOR", emulator).ran()
    };
    let ran = with(&["devices"], "/somewhere");
    assert!(ran.out.contains("software 0: Software device (emulated)"), "{}", ran.out);
    assert!(!ran.err.contains("YIRAGE_PLUGINS"), "{}", ran.err);
    let ran = with(&["devices"], "");
    assert!(ran.out.contains("software: unavailable: count: SOFTWARE_EMULATOR is not set"), "{}", ran.out);
    check(&with(&[&RUN[..], &["--backend", "software"]].concat(), ""), 3, &["SOFTWARE_EMULATOR is not set"]);
    let wrong = yirage(&["devices"]).env("YIRAGE_PLUGINS", "cuda=/no/x.so").ran();
    assert!(wrong.out.contains("plug-in: unavailable: `cuda` is a backend of this build"), "{}", wrong.out);
}
