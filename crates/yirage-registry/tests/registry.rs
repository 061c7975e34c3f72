//! The registry on machines that tests made: what is there, what is chosen, and what is said of the rest.
#![allow(clippy::unwrap_used)] // helpers fail tests by panicking

use std::sync::Arc;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_registry::{BackendAvailability, ProbeEnvironment, Registry, RegistryError};

/// A backend that says what it is told to.
struct Fake {
    name: &'static str,
    devices: u32,
    software: bool,
}

impl Backend for Fake {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        if self.devices == 0 {
            return Err(Unavailable {
                backend: self.name,
                why: "unplugged".into(),
                remedy: "plug it in".into(),
                present: true,
            });
        }
        let software = self.software;
        let device = |n| DeviceInfo { software, ..DeviceInfo::new(self.name, n, format!("Fake {n}"), "fake") };
        Ok((0..self.devices).map(device).collect())
    }

    fn open(&self, _: u32, _: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        Err(HalError::Unsupported { what: "a fake".into(), why: "it has no device".into() })
    }
}

fn fake(name: &'static str, devices: u32) -> Arc<dyn Backend> {
    Arc::new(Fake { name, devices, software: false })
}

/// A machine without any library.
fn bare() -> (tempfile::TempDir, Registry) {
    let root = tempfile::tempdir().unwrap();
    let nothing: [(&str, &str); 0] = [];
    let registry = Registry::new(ProbeEnvironment::new(root.path(), nothing));
    (root, registry)
}

fn default(registry: &Registry) -> &'static str {
    registry.get_default().unwrap().name()
}

fn why_not(registry: &Registry, name: &str) -> RegistryError {
    registry.select(name).map(|backend| backend.name()).unwrap_err()
}

#[test]
fn a_bare_machine_has_the_processor_alone() {
    let (_root, registry) = bare();
    assert_eq!((registry.list_available(), default(&registry)), (vec!["cpu"], "cpu"));
    assert_eq!(registry.discover().iter().map(|d| d.backend).collect::<Vec<_>>(), ["cpu"]);
    assert!(registry.get("ascend").is_none() && registry.get("nonsense").is_none());
    let error = why_not(&registry, "cambricon").to_string();
    for part in [
        "backend cambricon is not available",
        "libcndrv.so",
        "install Cambricon's driver and Neuware",
        "available here: cpu",
    ] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

#[test]
fn backends_of_tests_open_by_name_and_are_in_no_list() {
    let (_root, registry) = bare();
    assert_eq!(registry.get("reference").unwrap().name(), "reference");
    assert!(!registry.list_available().contains(&"reference"));
    assert!(registry.discover().iter().all(|device| device.backend != "reference"));
    assert!(registry.survey().iter().all(|finding| finding.name != "reference"));
}

#[test]
fn an_unknown_name_is_answered_with_the_list() {
    let (_root, registry) = bare();
    let RegistryError::Unknown { name, known } = why_not(&registry, "warp") else { panic!("unknown") };
    assert_eq!((name.as_str(), known[0]), ("warp", "auto"));
    for name in ["cpu", "cuda", "mps", "ascend", "cambricon", "hygon", "metax", "moore", "iluvatar"] {
        assert!(known.contains(&name), "{name}");
    }
    for name in ["kunlun", "qy", "ali", "hip", "vulkan", "dx12", "reference"] {
        assert!(known.contains(&name), "{name}");
    }
}

#[test]
fn every_name_has_its_other_names() {
    let (_root, registry) = bare();
    for (alias, name) in [
        ("nvidia", "cuda"),
        ("maca", "metax"),
        ("musa", "moore"),
        ("npu", "ascend"),
        ("mlu", "cambricon"),
        ("dcu", "hygon"),
        ("corex", "iluvatar"),
        ("metal", "mps"),
        ("d3d12", "dx12"),
        ("amd", "hip"),
        ("rocm", "hip"),
        ("CUDA", "cuda"),
    ] {
        let RegistryError::Unavailable(unavailable, _) = why_not(&registry, alias) else { panic!("{alias}") };
        assert_eq!(unavailable.backend, name, "{alias}");
    }
    assert_eq!(registry.get("CPU").unwrap().name(), "cpu");
}

#[test]
fn names_are_used_once() {
    let (_root, registry) = bare();
    let mut names: Vec<&str> = registry.survey().iter().flat_map(|f| [&[f.name], f.aliases].concat()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}

#[test]
fn the_order_is_kept_whoever_registers_first() {
    let (_root, mut registry) = bare();
    let order = ["vulkan", "mps", "iluvatar", "moore", "metax", "hip", "hygon", "cambricon", "ascend", "cuda"];
    for name in order {
        registry.register(fake(name, 1));
        assert_eq!(default(&registry), name, "a backend that a test registers changes the default");
    }
    let wanted: Vec<_> = order.into_iter().rev().chain(["cpu"]).collect();
    assert_eq!(registry.list_available(), wanted);
    registry.reset();
    assert_eq!((registry.list_available(), default(&registry)), (vec!["cpu"], "cpu"));
}

#[test]
fn a_backend_with_a_name_of_its_own_comes_first() {
    let (_root, mut registry) = bare();
    registry.register(fake("mine", 2));
    assert_eq!((default(&registry), registry.list_available()), ("mine", vec!["mine", "cpu"]));
    assert_eq!(
        registry.discover().iter().map(|d| (d.backend, d.ordinal)).take(2).collect::<Vec<_>>(),
        [("mine", 0), ("mine", 1)]
    );
    registry.register(fake("mine", 0));
    assert_eq!(
        (default(&registry), why_not(&registry, "mine").to_string()),
        ("cpu", "the backend mine is not available: unplugged; plug it in; available here: cpu".to_owned())
    );
}

#[test]
fn a_processor_that_plays_a_device_ranks_below_itself() {
    let (_root, mut registry) = bare();
    registry.register(Arc::new(Fake { name: "vulkan", devices: 1, software: true }));
    assert_eq!((default(&registry), registry.list_available()), ("cpu", vec!["cpu", "vulkan"]));
    assert_eq!(registry.get("vulkan").unwrap().name(), "vulkan", "it can be asked for");
    registry.register(fake("vulkan", 1));
    assert_eq!(default(&registry), "vulkan");
}

#[test]
fn the_default_can_be_set_and_stays_after_a_failure() {
    let (_root, mut registry) = bare();
    registry.register(fake("cuda", 1));
    registry.set_default("cpu").unwrap();
    assert_eq!((default(&registry), registry.select("auto").unwrap().name()), ("cpu", "cpu"));
    assert!(matches!(registry.set_default("ascend"), Err(RegistryError::Unavailable(..))));
    assert!(matches!(registry.set_default("warp"), Err(RegistryError::Unknown { .. })));
    assert_eq!(default(&registry), "cpu");
    registry.set_default("auto").unwrap();
    assert_eq!(default(&registry), "cuda");
    registry.set_default("reference").unwrap();
    assert_eq!(default(&registry), "reference", "who sets it wants it");
    registry.reset();
    assert_eq!(default(&registry), "cpu");
}

#[test]
fn without_any_device_every_reason_is_told() {
    let (_root, mut registry) = bare();
    registry.register(fake("cpu", 0));
    let error = registry.get_default().map(|backend| backend.name()).unwrap_err();
    assert_eq!(error.to_string(), "no backend is available: cpu: unplugged; plug it in");
    assert!(registry.list_available().is_empty() && registry.discover().is_empty());
}

#[test]
fn a_survey_has_a_reason_for_everything_that_cannot_be_used() {
    let (_root, registry) = bare();
    for finding in registry.survey() {
        match finding.availability {
            BackendAvailability::Usable(backend, devices) => assert!(backend.name() == "cpu" && !devices.is_empty()),
            BackendAvailability::Nothing(why) => {
                assert!(why.backend == finding.name && !why.why.is_empty() && !why.remedy.is_empty(), "{why}");
            }
        }
    }
}

#[test]
fn a_feature_that_is_off_is_said_to_be() {
    let (_root, registry) = bare();
    for (name, feature, on) in [
        ("cpu", "cpu", cfg!(feature = "cpu")),
        ("cuda", "cuda", cfg!(feature = "cuda")),
        ("hip", "hip", cfg!(feature = "hip")),
        ("hygon", "hip", cfg!(feature = "hip")),
        ("moore", "musa", cfg!(feature = "musa")),
        ("metax", "maca", cfg!(feature = "maca")),
        ("iluvatar", "corex", cfg!(feature = "corex")),
        ("ascend", "ascend", cfg!(feature = "ascend")),
        ("cambricon", "cambricon", cfg!(feature = "cambricon")),
        ("mps", "mps", cfg!(feature = "mps")),
        ("vulkan", "vulkan", cfg!(feature = "vulkan")),
        ("dx12", "dx12", cfg!(feature = "dx12")),
    ] {
        let found = registry.survey().into_iter().find(|finding| finding.name == name).unwrap().availability;
        let left_out = match found {
            BackendAvailability::Nothing(why) => {
                why.why == "this build leaves it out" && why.remedy.contains(&format!("`{feature}`"))
            }
            _ => false,
        };
        assert_eq!(left_out, !on, "{name}");
    }
}

#[cfg(all(target_os = "linux", feature = "cambricon"))]
#[test]
fn devices_whose_libraries_are_missing_are_there_and_never_chosen() {
    let (root, registry) = bare();
    let library = root.path().join("usr/lib/libcndrv.so");
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    let source = root.path().join("driver.c");
    std::fs::write(&source, DRIVER).unwrap();
    let ran = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    assert!(ran.as_ref().is_ok_and(|ran| ran.status.success()), "{ran:?}");
    let found = registry.survey().into_iter().find(|finding| finding.name == "cambricon").unwrap().availability;
    let BackendAvailability::Usable(backend, devices) = found else { panic!("two devices") };
    assert_eq!((backend.name(), devices.len()), ("cambricon", 2));
    assert!(devices.iter().all(|device| device.name == "MLU370-S4"), "{devices:?}");
    // It is taken by its name alone, and says what it would need to compute.
    assert_eq!(default(&registry), "cpu");
    let error = backend.open(0, &OpenOptions::default()).map(drop).unwrap_err().to_string();
    assert!(error.contains("libcnrt.so") && error.contains("the package cnrt of Neuware"), "{error}");
}

/// A driver with two devices.
#[cfg(all(target_os = "linux", feature = "cambricon"))]
const DRIVER: &str = r#"
#include <stddef.h>
#include <string.h>
int cnInit(unsigned flags) { return (int)flags; }
int cnGetDriverVersion(int *major, int *minor, int *patch) { *major = 5; *minor = 10; *patch = 22; return 0; }
int cnDeviceGetCount(int *count) { *count = 2; return 0; }
int cnDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cnDeviceGetName(char *name, int length, int device) { (void)device; strncpy(name, "MLU370-S4", (size_t)length); return 0; }
int cnDeviceTotalMem(size_t *bytes, int device) { (void)device; *bytes = (size_t)80 << 30; return 0; }
"#;

/// What a registry says behind a name that only the variable brings, with this value of it.
#[cfg(feature = "plugins")]
fn with_plugins(value: &str) -> (Registry, Vec<(&'static str, String)>) {
    let root = tempfile::tempdir().unwrap();
    let registry = Registry::new(ProbeEnvironment::new(root.path(), [("YIRAGE_PLUGINS", value)]));
    let told = registry.survey().into_iter().filter_map(|finding| match finding.availability {
        BackendAvailability::Nothing(why) if why.present => Some((finding.name, why.to_string())),
        _ => None,
    });
    let told = told.collect();
    (registry, told)
}

#[cfg(feature = "plugins")]
#[test]
fn libraries_are_backends_where_the_variable_names_them() {
    assert_eq!(with_plugins("").1, []);
    let (registry, told) = with_plugins("kunlun=/no/xre.so:mine=/no/mine.so");
    let names: Vec<&str> = told.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["kunlun", "mine"]);
    assert!(told[0].1.contains("/no/xre.so") && told[1].1.contains("/no/mine.so"), "{told:?}");
    assert_eq!(default(&registry), "cpu", "never a default");
    assert!(registry.backends().contains(&"mine") && !registry.list_available().contains(&"mine"));
    assert!(why_not(&registry, "xpu").to_string().contains("/no/xre.so"), "the other names stay");
}

#[cfg(feature = "plugins")]
#[test]
fn what_the_variable_names_wrongly_is_listed_with_the_reason() {
    for (value, told) in [
        ("/no/name.so", "expected NAME=PATH, got `/no/name.so`"),
        ("cuda=/no/x.so", "`cuda` is a backend of this build"),
        ("xpu=/no/x.so", "`xpu` is another name of `kunlun`: write kunlun=/no/x.so"),
        ("mine=relative.so", "expected an absolute path, got `relative.so`"),
        ("No Word=/no/x.so", "got `No Word`"),
    ] {
        let (_, found) = with_plugins(value);
        assert!(found.len() == 1 && found[0].0 == "plug-in" && found[0].1.contains(told), "{value}: {found:?}");
    }
}
