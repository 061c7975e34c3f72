//! Where repacked weights are kept between starts, and what else is known of their models.

use std::path::{Path, PathBuf};
use yirage_packed::texts_folder;
use yirage_plancache::PlanFolder;
use yirage_plancache::limits::FOLDER_BYTES;

/// Where repacked weights are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedOptions {
    /// The folder of entries.
    pub folder: PathBuf,
    /// Bytes of all entries together.
    pub limit: u64,
}

impl PackedOptions {
    /// Where small texts about the same models are kept: which variants of the kernels were fastest, compiled plans.
    pub fn texts(&self) -> PathBuf {
        texts_folder(&self.folder)
    }

    /// The compiled plans there.
    pub fn plans(&self) -> PlanFolder {
        plan_folder(&self.folder)
    }
}

/// The compiled plans beside the repacked weights in `folder`.
pub fn plan_folder(folder: &Path) -> PlanFolder {
    PlanFolder::new(texts_folder(folder), FOLDER_BYTES)
}
