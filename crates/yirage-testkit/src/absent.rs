//! What a clone does not have: large models, and reference files of others that may not be copied.
//!
//! Tests that need these are `#[ignore = "needs ..."]`; `cargo test -- --ignored` runs them, and they fail where it is absent.

use std::path::{Path, PathBuf};

/// A file of the reference files beside the checkout.
///
/// # Panics
/// It is absent.
#[must_use]
pub fn shared(what: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(what);
    assert!(path.exists(), "this test needs {}, which is not there", path.display());
    path
}

/// A file in the folder of large models.
///
/// # Panics
/// `YIRAGE_MODELS` is not set, or the file is absent.
#[must_use]
pub fn model(file: &str) -> PathBuf {
    let folder = std::env::var_os("YIRAGE_MODELS");
    let path =
        PathBuf::from(folder.unwrap_or_else(|| panic!("this test needs {file}: set YIRAGE_MODELS to its folder")))
            .join(file);
    assert!(path.exists(), "this test needs {}, which is not there", path.display());
    path
}
