//! The other vendors: the same host code by the names of their functions, and the text of their own kernels.

use crate::conformance::{MINIMAL, holds};
use crate::failures::{all_is_back, everything};
use crate::fake::{FakeCuda, FakeVendor};
use crate::models;
use std::sync::Arc;
use yirage_conformance::Suite;
use yirage_cuda::{CudaBackend, CudaVendor};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_testkit::tiny;

const VENDORS: [(CudaVendor, FakeVendor); 4] = [
    (CudaVendor::Amd, FakeVendor::Hip),
    (CudaVendor::MooreThreads, FakeVendor::Musa),
    (CudaVendor::Iluvatar, FakeVendor::Corex),
    (CudaVendor::MetaX, FakeVendor::Maca),
];

fn device((vendor, fake): (CudaVendor, FakeVendor)) -> (Arc<dyn Device>, FakeCuda) {
    let machine = FakeCuda::of(fake, &[]);
    let (device, notes) = CudaBackend::new(vendor, machine.surroundings()).open(0, &OpenOptions::default()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    (device, machine)
}

#[test]
#[ignore = "needs a compiler of C++"]
fn everything_is_done_and_nothing_is_kept() {
    for (vendor, fake) in VENDORS {
        let machine = FakeCuda::of(fake, &[]);
        let (words, _) = everything(vendor, &machine).unwrap();
        assert_eq!((words[0], words[1]), (0, 0x0101_0101u32.wrapping_mul(9).wrapping_add(4)), "{vendor:?}");
        let mut stats = machine.stats();
        if fake == FakeVendor::Maca {
            // Its context lasts as long as the process.
            stats.contexts -= 1;
        }
        assert!(all_is_back(stats), "{vendor:?}: {stats:?}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn waves_are_those_of_the_device() {
    let widths = |arch: &str| {
        let machine = FakeCuda::of(FakeVendor::Hip, &[("FAKE_CUDA_ARCH", arch)]);
        let backend = CudaBackend::new(CudaVendor::Amd, machine.surroundings());
        let device = backend.open(0, &OpenOptions::default()).unwrap().0;
        (device.info().arch.clone(), device.target().limits.subgroup_widths)
    };
    assert_eq!(widths("gfx90a:sramecc+:xnack-"), ("gfx90a".into(), vec![64]));
    assert_eq!(widths("gfx1100"), ("gfx1100".into(), vec![32]));
    let (moore, _machine) = device(VENDORS[1]);
    assert_eq!((moore.info().arch.as_str(), moore.target().limits.subgroup_widths), ("mp_22", vec![32]));
    let (iluvatar, _machine) = device(VENDORS[2]);
    let (metax, _machine) = device(VENDORS[3]);
    assert_eq!((metax.info().arch.as_str(), metax.target().limits.subgroup_widths), ("C500", vec![64]));
    assert_eq!((iluvatar.info().arch.as_str(), iluvatar.target().limits.subgroup_widths), ("ivcore71", vec![64]));
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_share_of_the_cases_and_a_model_hold() {
    for vendor in VENDORS {
        let (device, _machine) = device(vendor);
        holds(&device, &Suite::sample(96));
        models::check(&tiny::NAMES[..1], &device);
    }
}

#[test]
#[ignore = "needs a compiler of C++, and an hour"]
fn every_case_and_every_architecture_in_all_its_ways_hold() {
    for vendor in VENDORS {
        let (device, _machine) = device(vendor);
        holds(&device, &Suite::quick_of(&MINIMAL));
        holds(&device, &Suite::new());
        models::check(tiny::NAMES, &device);
    }
}
