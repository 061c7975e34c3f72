//! From a name to files.

use crate::error::SessionError;
use std::path::{Path, PathBuf};
use yirage_hub::{DownloadProgress, Hub, ModelOrigin, ModelRef, Resolved};

/// A model that is on this machine now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalModel {
    /// How it was called, or the default's name.
    pub name: String,
    /// File or folder.
    pub path: PathBuf,
    /// Whether it was fetched just now.
    pub fetched: bool,
}

impl LocalModel {
    /// The model called `name` without asking anybody: as a path, else in `folder` under that name, with or without
    /// `.gguf`.
    pub fn here(name: &str, folder: Option<&Path>) -> Option<LocalModel> {
        let in_folder = |folder: &Path| [folder.join(name), folder.join(format!("{name}.gguf"))];
        let mut places = [PathBuf::from(name)].into_iter().chain(folder.map(in_folder).into_iter().flatten());
        let path = places.find(|path| path.exists())?;
        Some(LocalModel { name: name.to_owned(), path, fetched: false })
    }

    /// The model called `name` by catalogue or hub, fetched where it is not here.
    ///
    /// # Errors
    /// [`SessionError::Hub`] when it is nowhere, saying where it was looked for and what to do.
    pub fn by_hub(name: &str, hub: &Hub, progress: &dyn DownloadProgress) -> Result<LocalModel, SessionError> {
        let shipped = if Path::new(name).exists() { None } else { hub.unpack(name)? };
        let found = match shipped {
            Some(found) => found,
            None => hub.resolve(&ModelRef::parse(name)?, progress)?,
        };
        Ok(LocalModel { name: name.to_owned(), ..LocalModel::of(found) })
    }

    /// The model of whoever names none.
    ///
    /// # Errors
    /// As [`LocalModel::by_hub`].
    pub fn default_model(hub: &Hub, progress: &dyn DownloadProgress) -> Result<LocalModel, SessionError> {
        Ok(LocalModel::of(hub.resolve_default(progress)?))
    }

    fn of(resolved: Resolved) -> LocalModel {
        let fetched = matches!(resolved.origin, ModelOrigin::Hub | ModelOrigin::Packages);
        LocalModel { name: resolved.name, path: resolved.path, fetched }
    }
}
