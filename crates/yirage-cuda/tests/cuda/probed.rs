//! The drivers in software under the names of other vendors: what a probe finds of them.

use crate::fake::{FakeCuda, FakeCudaStats, FakeVendor};
use yirage_probe::Family;
use yirage_probe::families::{COREX, HIP, MACA, MUSA};

/// What a probe finds of a vendor's first device, and the call that counts its devices.
struct Probed {
    vendor: FakeVendor,
    family: &'static Family,
    arch: &'static str,
    version: &'static str,
    cores: Option<u32>,
    count: &'static str,
}

const fn probed(vendor: FakeVendor, family: &'static Family, told: [&'static str; 3], cores: Option<u32>) -> Probed {
    let [arch, version, count] = told;
    Probed { vendor, family, arch, version, cores, count }
}

const VENDORS: [Probed; 4] = [
    probed(FakeVendor::Hip, &HIP, ["gfx90a", "6.0", "hipGetDeviceCount"], Some(104)),
    probed(FakeVendor::Musa, &MUSA, ["mp_22", "40300", "muDeviceGetCount"], Some(56)),
    probed(FakeVendor::Corex, &COREX, ["ivcore71", "10.2", "cuDeviceGetCount"], Some(32)),
    probed(FakeVendor::Maca, &MACA, ["C500", "30003", "mcGetDeviceCount"], None),
];

#[test]
#[ignore = "needs a compiler of C++"]
fn devices_of_other_vendors_are_found() {
    for Probed { vendor, family, arch, version, cores, count } in VENDORS {
        let machine = FakeCuda::of(vendor, &[("FAKE_CUDA_DEVICES", "2")]);
        let devices = family.look(&machine.surroundings()).unwrap();
        assert_eq!(devices.len(), 2, "{vendor:?}");
        for device in devices {
            assert_eq!(device.arch, arch);
            assert_eq!(device.driver_version.as_deref(), Some(version));
            assert_eq!(device.cores, cores);
        }
        assert_eq!(machine.stats(), FakeCudaStats::default(), "who only looks takes nothing");
        machine.fail(count, 1, 999);
        let why = family.look(&machine.surroundings()).unwrap_err().to_string();
        assert!(why.contains(count) && why.contains("999"), "{why}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_machine_has_the_architecture_and_the_version_that_it_is_told() {
    for (vendor, family, arch, version, written) in
        [(FakeVendor::Hip, &HIP, "gfx1100", "60342133", "6.3"), (FakeVendor::Musa, &MUSA, "mp_31", "50000", "50000")]
    {
        let machine = FakeCuda::of(vendor, &[("FAKE_CUDA_ARCH", arch), ("FAKE_CUDA_VERSION", version)]);
        let devices = family.look(&machine.surroundings()).unwrap();
        assert_eq!(devices[0].arch, arch);
        assert_eq!(devices[0].driver_version.as_deref(), Some(written));
    }
}
