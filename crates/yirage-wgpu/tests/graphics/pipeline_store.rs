//! What a driver compiles, kept between processes: written, taken, told where it is damaged or cannot be written, and never a change of
//! what is computed.

use crate::support::{affine, buffer_of, on, words};
use std::fs;
use std::path::Path;
use yirage_hal::driver::Driver;
use yirage_hal::{Backend, OpenOptions};
use yirage_probe::ProbeEnvironment;
use yirage_wgpu::{GraphicsApi, WgpuBackend, WgpuDriver};

/// The backend of this process's surroundings, with a folder named for compiled kernels.
fn keeping(folder: &Path) -> WgpuBackend {
    let own = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let named = ("YIRAGE_KERNEL_CACHE".to_owned(), folder.as_os_str().to_owned());
    WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::new("/", own.chain([named])))
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).map(|all| all.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

/// Computes something that is known.
fn compute(driver: &WgpuDriver) {
    let module = driver.load(&[affine("step", 64, 3, 1)]).unwrap();
    let x = buffer_of(driver, &[1; 64]);
    driver.submit(on(module, "step", 1, x)).unwrap();
    assert_eq!(words(driver, x), [4; 64]);
}

#[test]
#[ignore = "needs a device of Vulkan"]
fn what_was_compiled_is_there_for_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let cold = keeping(folder.path()).driver(0).unwrap();
    let Some((began_with, _)) = cold.kept_pipelines() else { panic!("the driver keeps nothing") };
    assert_eq!(began_with, 0);
    compute(&cold);
    let [entry] = &entries(folder.path())[..] else { panic!("{:?}", entries(folder.path())) };
    let warm = keeping(folder.path()).driver(0).unwrap();
    let (began_with, notices) = warm.kept_pipelines().unwrap();
    println!("the next one begins with {began_with} bytes");
    assert!(began_with > 0 && notices.is_empty(), "{notices:?}");
    compute(&warm);
    // One that is damaged is told, and made again.
    let text = fs::read_to_string(entry).unwrap();
    fs::write(entry, &text[..text.len() - 1]).unwrap();
    let damaged = keeping(folder.path());
    let (device, notes) = damaged.open(0, &OpenOptions::default()).unwrap();
    assert!(notes.iter().any(|note| note.contains("is not what was written")), "{notes:?}");
    assert!(device.info().facts.contains(&("compiled kernels", "kept on disk".into())));
    compute(&damaged.driver(0).unwrap());
}

#[test]
#[ignore = "needs a device of Vulkan"]
fn a_folder_that_cannot_be_written_is_told_and_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let backend = keeping(&file.join("below"));
    let (device, notes) = backend.open(0, &OpenOptions::default()).unwrap();
    assert!(notes.iter().any(|note| note.contains("compiled kernels are not kept")), "{notes:?}");
    assert!(device.info().facts.contains(&("compiled kernels", "not kept".into())));
    let driver = backend.driver(0).unwrap();
    assert!(driver.kept_pipelines().is_none());
    compute(&driver);
}
