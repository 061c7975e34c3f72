//! A folder of plan files: the plan of a key from there, or made and put there.

use crate::error::PlanFileError;
use crate::file::PlanFile;
use crate::interface::Interface;
use crate::key::PlanKey;
use crate::limits::FILE_BYTES;
use crate::notices::CacheNotice;
use std::path::{Path, PathBuf};
use yirage_packed::{RemovedFiles, TextStore};
use yirage_plan::{Target, VerifiedPlan};

/// Plan files that together keep to a limit. Processes may share the folder; files in it with other names are left alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanFolder(TextStore);

/// Where a plan is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanOrigin {
    /// It was compiled.
    Compiled,
    /// It lay on disk, and was proved.
    File,
}

impl PlanFolder {
    /// The plans in `folder`, of at most `limit` bytes together. The folder is made when the first one is written.
    pub fn new(folder: PathBuf, limit: u64) -> PlanFolder {
        PlanFolder(TextStore::new(folder, ".plan", FILE_BYTES, limit))
    }

    /// Removes all of them: how many, and their bytes.
    ///
    /// # Errors
    /// [`PlanFileError::Texts`].
    pub fn clear(&self) -> Result<RemovedFiles, PlanFileError> {
        Ok(self.0.clear()?)
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        self.0.folder()
    }

    /// The plan of `key`, from its file, or else what `compile` makes, which is then written. A file that is refused, and one
    /// that cannot be written, are told and change nothing else.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn plan<E>(
        &self,
        key: &PlanKey,
        interface: &Interface,
        target: &Target,
        told: &mut Vec<CacheNotice>,
        compile: impl FnOnce() -> Result<VerifiedPlan, E>,
    ) -> Result<(VerifiedPlan, PlanOrigin), E> {
        match self.read(key, interface, target) {
            Ok(Some(plan)) => return Ok((plan, PlanOrigin::File)),
            Ok(None) => {}
            Err(why) => told.push(CacheNotice::Refused { file: self.0.file(key.id()), why: why.to_string() }),
        }
        let plan = compile()?;
        if let Err(why) = self.write(key, interface, &plan) {
            told.push(CacheNotice::NotWritten { file: self.0.file(key.id()), why: why.to_string() });
        }
        Ok((plan, PlanOrigin::Compiled))
    }

    fn read(
        &self,
        key: &PlanKey,
        interface: &Interface,
        target: &Target,
    ) -> Result<Option<VerifiedPlan>, PlanFileError> {
        let Some(text) = self.0.read(key.id())? else { return Ok(None) };
        let file = PlanFile::parse(&text)?;
        file.key.check(key)?;
        let proved = file.prove(target)?;
        // The key has a hash of it, which somebody may have met on purpose.
        interface.check(&proved.plan)?;
        Ok(Some(proved.plan))
    }

    fn write(&self, key: &PlanKey, interface: &Interface, plan: &VerifiedPlan) -> Result<(), PlanFileError> {
        let file = PlanFile { key: key.clone(), interface: interface.clone(), plan: (**plan).clone() };
        self.0.write(key.id(), &file.print()?)?;
        Ok(())
    }
}
