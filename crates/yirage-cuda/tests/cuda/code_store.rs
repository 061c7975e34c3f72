//! Compiled kernels kept on disk: made once for a compiler, a driver and a device, made again where a file is not what was written.

use crate::fake::FakeCuda;
use crate::support::{affine, buffer_of, on, run, words};
use std::fs;
use std::path::Path;
use yirage_cuda::{CodeStoreReport, CudaBackend, CudaVendor};
use yirage_hal::{Backend, OpenOptions};

/// Runs two kernels on a machine that keeps its code in a folder: what became of them.
fn ran(settings: &[(&str, &str)], folder: &Path) -> CodeStoreReport {
    let machine = FakeCuda::new(settings);
    let backend = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings_keeping(folder));
    let driver = backend.driver(0).unwrap();
    let kernels = [affine("a", 100, 3, 1), affine("b", 100, 1, 5)];
    let module = driver.load(&kernels).unwrap();
    let x = buffer_of(&driver, &[2; 100]);
    run(&driver, on(module, "a", 2, x)).unwrap();
    run(&driver, on(module, "b", 2, x)).unwrap();
    assert_eq!(words(&driver, x), [12; 100]);
    driver.code_report().unwrap()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
#[ignore = "needs a compiler of C++"]
fn kernels_are_compiled_once_for_a_driver_and_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("new");
    let of = |report: &CodeStoreReport| (report.made, report.read, report.notices.len());
    assert_eq!(of(&ran(&[], &kept)), (2, 0, 0));
    assert_eq!(of(&ran(&[], &kept)), (0, 2, 0));
    assert_eq!(of(&ran(&[("FAKE_CUDA_ARCH", "sm_86")], &kept)), (2, 0, 0), "another architecture");
    assert_eq!(of(&ran(&[("FAKE_CUDA_VERSION", "12080")], &kept)), (2, 0, 0), "another driver");
    assert_eq!(files(&kept).len(), 6);
    for file in files(&kept) {
        let mut text = fs::read(&file).unwrap();
        let middle = text.len() / 2;
        text[middle] = if text[middle] == b'0' { b'1' } else { b'0' };
        fs::write(&file, text).unwrap();
    }
    let damaged = ran(&[], &kept);
    assert_eq!(of(&damaged), (2, 0, 2));
    assert!(damaged.notices.iter().all(|notice| notice.contains("it is made again")), "{:?}", damaged.notices);
    assert_eq!(of(&ran(&[], &kept)), (0, 2, 0));
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_folder_that_cannot_be_written_is_told_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let machine = FakeCuda::new(&[]);
    let open = |folder: &Path| {
        let backend = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings_keeping(folder));
        let (device, notes) = backend.open(0, &OpenOptions::default()).unwrap();
        let facts = device.info().facts.clone();
        (notes, facts.into_iter().find(|(name, _)| *name == "compiled kernels").unwrap().1)
    };
    let (notes, said) = open(&file);
    assert!(notes.len() == 1 && notes[0].starts_with("compiled kernels are not kept: "), "{notes:?}");
    assert_eq!(said, "not kept");
    assert_eq!(open(&folder.path().join("new")), (Vec::new(), "kept on disk".into()));
    let report = ran(&[], &file);
    assert!(report.made == 2 && report.notices.len() >= 2, "{report:?}");
}
