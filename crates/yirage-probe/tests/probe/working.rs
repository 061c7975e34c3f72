//! Every family with a library that works and has two devices.

use crate::fakes::{CUDA, Machine};
use yirage_hal::DeviceInfo;
use yirage_probe::{DriverLibrary, Family, families};

const GIB: u64 = 1 << 30;

/// A family, where its library lies, its source, and what the compiler is told.
type Fake = (&'static Family, &'static str, &'static str, &'static [&'static str]);

const HIP: &[&str] = &[
    "START=hipInit",
    "VERSION=hipRuntimeGetVersion",
    "ANSWER=60342133",
    "COUNT=hipGetDeviceCount",
    "DEVICE=hipDeviceGet",
    "NAME=hipDeviceGetName",
    "MEMORY=hipDeviceTotalMem",
    "ATTRIBUTE=hipDeviceGetAttribute",
    "MAJOR=9",
    "MINOR=4",
    "RECORD=hipGetDevicePropertiesR0600",
    "AT=1160",
    "ARCH=\"gfx942:sramecc+:xnack-\"",
];
const DTK: &[&str] = &[
    "START=hipInit",
    "VERSION=hipRuntimeGetVersion",
    "ANSWER=50221153",
    "COUNT=hipGetDeviceCount",
    "DEVICE=hipDeviceGet",
    "NAME=hipDeviceGetName",
    "MEMORY=hipDeviceTotalMem",
    "ATTRIBUTE=hipDeviceGetAttribute",
    "MAJOR=9",
    "MINOR=2",
    "RECORD=hipGetDeviceProperties",
    "AT=396",
    "ARCH=\"gfx936\"",
];
const MUSA: &[&str] = &[
    "START=muInit",
    "VERSION=muDriverGetVersion",
    "ANSWER=30100",
    "COUNT=muDeviceGetCount",
    "DEVICE=muDeviceGet",
    "NAME=muDeviceGetName",
    "MEMORY=muDeviceTotalMem_v2",
    "ATTRIBUTE=muDeviceGetAttribute",
    "MAJOR=2",
    "MINOR=2",
];
const MACA: &[&str] = &[
    "START=mcInit",
    "VERSION=mcRuntimeGetVersion",
    "COUNT=mcGetDeviceCount",
    "DEVICE=mcDeviceGet",
    "NAME=mcDeviceGetName",
    "MEMORY=mcDeviceTotalMem",
    "TITLE=\"MetaX C500\"",
];
const MLU: &[&str] = &[
    "START=cnInit",
    "VERSIONS=cnGetDriverVersion",
    "COUNT=cnDeviceGetCount",
    "DEVICE=cnDeviceGet",
    "NAME=cnDeviceGetName",
    "MEMORY=cnDeviceTotalMem",
    "TITLE=\"MLU370-S4\"",
];

const FAKES: &[Fake] = &[
    (&families::CUDA, "/usr/lib/libcuda.so.1", "driver.c", CUDA),
    (&families::COREX, "/usr/local/corex/lib64/libcuda.so.1", "driver.c", CUDA),
    (&families::HIP, "/opt/rocm/lib/libamdhip64.so.6", "driver.c", HIP),
    (&families::HYGON, "/opt/dtk/lib/libgalaxyhip.so.5", "driver.c", DTK),
    (&families::MUSA, "/usr/local/musa/lib/libmusa.so.1", "driver.c", MUSA),
    (&families::MACA, "/opt/maca/lib/libmcruntime.so", "driver.c", MACA),
    (&families::CAMBRICON, "/usr/local/neuware/lib64/libcndrv.so", "driver.c", MLU),
    (&families::ASCEND, "/usr/local/Ascend/ascend-toolkit/latest/lib64/libascendcl.so", "ascend.c", &[]),
    (&families::VULKAN, "/usr/lib64/libvulkan.so.1", "vulkan.c", &[]),
];

/// Puts a family's library onto a machine.
pub(crate) fn install(family: &Family, machine: &Machine) {
    let (_, path, source, definitions) = FAKES.iter().find(|fake| fake.0.name == family.name).unwrap();
    machine.library(path, source, definitions);
}

fn look(family: &'static Family) -> Vec<DeviceInfo> {
    let machine = Machine::new();
    install(family, &machine);
    family.look(&machine.surroundings()).unwrap_or_else(|e| panic!("{e}"))
}

fn fake(name: &str) -> Vec<DeviceInfo> {
    look(families::ALL.into_iter().find(|family| family.name == name).unwrap())
}

#[test]
fn every_family_counts_and_describes_its_devices() {
    for fake in FAKES {
        let devices = look(fake.0);
        let name = fake.0.name;
        assert_eq!(devices.iter().map(|d| (d.backend, d.ordinal)).collect::<Vec<_>>(), [(name, 0), (name, 1)]);
        for device in &devices {
            let library = device.facts.iter().find(|(fact, _)| *fact == "library").unwrap();
            assert!(library.1.ends_with(fake.1), "{name}: {library:?}");
            assert!(!device.facts.iter().any(|(fact, _)| *fact == "not_told"), "{name}: {:?}", device.facts);
            assert!(device.total_memory_bytes.is_some_and(|bytes| bytes >= 8 * GIB), "{name}");
            assert!(device.capabilities.fp32 && device.arch != "unknown", "{name}: {}", device.arch);
        }
    }
}

#[test]
fn facts_are_read_where_the_makers_put_them() {
    let [first, second] = &fake("cuda")[..] else { panic!("two devices") };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("Loopback 0", "Loopback 1"));
    assert_eq!((first.arch.as_str(), first.capabilities.fp8, first.cores), ("sm_89", true, Some(108)));
    assert_eq!((first.total_memory_bytes, second.total_memory_bytes), (Some(8 * GIB), Some(16 * GIB)));
    assert_eq!((first.driver_version.as_deref(), first.sdk_version.as_deref()), (None, Some("12.4")));
    let arch = |name| fake(name).remove(0).arch;
    assert_eq!([arch("hip"), arch("hygon"), arch("moore")], ["gfx942", "gfx936", "mp_22"]);
    assert_eq!([arch("iluvatar"), arch("metax")], ["ivcore89", "C500"]);
    assert_eq!([arch("cambricon"), arch("ascend")], ["MLU370", "Ascend910B3"]);
    let version = |name| fake(name).remove(0).driver_version.unwrap();
    assert_eq!([version("hip"), version("hygon"), version("cambricon")], ["6.3", "5.2", "5.10.22"]);
    let ascend = fake("ascend").remove(1);
    assert_eq!((ascend.memory_bytes, ascend.total_memory_bytes), (Some(60 * GIB), Some(64 * GIB)));
    assert_eq!(ascend.sdk_version.as_deref(), Some("1.14.0"));
}

#[test]
fn a_processor_that_plays_a_device_is_told_apart() {
    let devices = fake("vulkan");
    let told: Vec<_> = devices.iter().map(|d| (d.name.as_str(), d.software, d.total_memory_bytes)).collect();
    assert_eq!(told, [("Radeon", false, Some(24 * GIB)), ("llvmpipe", true, Some(24 * GIB))]);
    assert_eq!(devices[0].arch, "vulkan 1.3.230");
}

#[test]
fn vulkans_last_instance_stays_for_what_computes_afterwards() {
    let machine = Machine::new();
    let path = machine.library("/usr/lib64/libvulkan.so.1", "vulkan.c", &[]);
    let left = || {
        families::VULKAN.look(&machine.surroundings()).unwrap();
        let library = DriverLibrary::at(&path).unwrap();
        let mut count = 0;
        // SAFETY: the type is that of `fakeInstances`, which writes one number.
        unsafe { library.function::<unsafe extern "C" fn(*mut i32) -> i32>("fakeInstances").unwrap()(&mut count) };
        count
    };
    assert_eq!([left(), left()], [1, 1]);
}

#[test]
fn what_only_describes_a_device_may_be_missing_and_is_named() {
    let machine = Machine::new();
    let less: Vec<_> = CUDA.iter().copied().filter(|d| !d.starts_with("MEMORY") && !d.starts_with("ATTR")).collect();
    machine.library("/usr/lib/libcuda.so.1", "driver.c", &less);
    let device = families::CUDA.look(&machine.surroundings()).unwrap().remove(0);
    let missing: Vec<_> = device.facts.iter().filter(|(fact, _)| *fact == "not_told").map(|(_, why)| why).collect();
    assert_eq!((device.arch.as_str(), device.total_memory_bytes, device.cores), ("unknown", None, None));
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(missing.iter().any(|why| why.contains("cuDeviceTotalMem_v2")), "{missing:?}");
    let machine = Machine::new();
    machine.library("/usr/lib/libascendcl.so", "ascend.c", &["NO_MEMORY"]);
    let device = families::ASCEND.look(&machine.surroundings()).unwrap().remove(0);
    assert!(device.total_memory_bytes.is_none() && device.capabilities.hccl);
}

#[test]
fn the_version_of_nvidias_driver_is_the_one_that_users_know() {
    let machine = Machine::new();
    install(&families::CUDA, &machine);
    let version = |line: &str| {
        std::fs::write(machine.file("/proc/driver/nvidia/version"), line).unwrap();
        families::CUDA.look(&machine.surroundings()).unwrap().remove(0).driver_version
    };
    let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@host)\nGCC version: 12.2.0\n";
    assert_eq!(version(open).as_deref(), Some("580.159.04"));
    let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60  Mon Nov 28 2022\n";
    assert_eq!(version(closed).as_deref(), Some("525.60"));
    assert_eq!(version("nothing of the kind\n"), None);
}
