//! A beginning from the cache to a file.

use super::PrefixSize;
use super::fingerprint::ModelFingerprint;
use super::header::PrefixHeader;
use crate::error::SessionError;
use crate::prefix_file_error::{PrefixFileError, PrefixFileFault};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use yirage_engine::Engine;

/// Writes the longest beginning of `tokens` that the cache has to a file.
pub(crate) fn write(
    engine: &mut Engine,
    path: &Path,
    model: ModelFingerprint,
    tokens: &[u32],
    salt: &[u8],
) -> Result<PrefixSize, SessionError> {
    let mut file = None;
    let positions = pieces(engine, (path, model), tokens, salt, |piece| {
        let file = match &mut file {
            Some(file) => file,
            none => none.insert(PartFile::create(path)?),
        };
        file.write(piece)
    })?;
    let bytes = file.map_or(Ok(0), PartFile::finish)?;
    Ok(PrefixSize { positions, bytes })
}

/// The same as the bytes of such a file; none where the cache has nothing of it. Errors name `to`.
pub(crate) fn bytes(
    engine: &mut Engine,
    to: &Path,
    model: ModelFingerprint,
    tokens: &[u32],
    salt: &[u8],
) -> Result<Vec<u8>, SessionError> {
    let (mut bytes, mut hash) = (Vec::new(), Sha256::new());
    let positions = pieces(engine, (to, model), tokens, salt, |piece| {
        hash.update(piece);
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    if positions > 0 {
        bytes.extend_from_slice(&hash.finalize());
    }
    Ok(bytes)
}

/// Gives header and contents piece by piece; nothing where the cache has nothing. Gives the positions.
fn pieces(
    engine: &mut Engine,
    (path, model): (&Path, ModelFingerprint),
    tokens: &[u32],
    salt: &[u8],
    mut piece: impl FnMut(&[u8]) -> Result<(), PrefixFileError>,
) -> Result<usize, SessionError> {
    let computed_by = engine.cache_identity();
    let prefix = engine.cached_prefix(tokens, salt)?;
    let positions = prefix.positions();
    if positions == 0 {
        return Ok(0);
    }
    let tokens = tokens[..positions].to_vec();
    let caches = prefix.caches();
    let header = PrefixHeader { model: model.to_string(), computed_by, tokens, salt: salt.to_vec(), caches };
    piece(&header.print().map_err(|fault| fault.of(path))?)?;
    for (name, _) in &header.caches {
        piece(&prefix.contents(name)?)?;
    }
    Ok(positions)
}

/// Counts the files of this process, so that two that are written at once have two names.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// A file under another name until it is whole; dropped before, it is removed.
struct PartFile<'p> {
    path: &'p Path,
    part: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
    /// Whether it has its own name, and nothing is to be removed.
    is_named: bool,
}

impl<'p> PartFile<'p> {
    fn create(path: &'p Path) -> Result<PartFile<'p>, PrefixFileError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{}.new", std::process::id(), PARTS.fetch_add(1, Ordering::Relaxed)));
        let part = path.with_file_name(name);
        let file = File::create(&part).map_err(PrefixFileFault::io("create it")).map_err(|fault| fault.of(&part))?;
        Ok(PartFile { path, part, file, hash: Sha256::new(), bytes: 0, is_named: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), PrefixFileError> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(PrefixFileFault::io("write it")).map_err(|fault| fault.of(&self.part))
    }

    /// Ends it with its sum and gives it its name.
    fn finish(mut self) -> Result<u64, PrefixFileError> {
        let sum: [u8; 32] = self.hash.clone().finalize().into();
        self.write(&sum)?;
        self.file.sync_all().map_err(PrefixFileFault::io("write it")).map_err(|fault| fault.of(&self.part))?;
        fs::rename(&self.part, self.path)
            .map_err(PrefixFileFault::io("name it"))
            .map_err(|fault| fault.of(self.path))?;
        self.is_named = true;
        Ok(self.bytes)
    }
}

impl Drop for PartFile<'_> {
    fn drop(&mut self) {
        if !self.is_named {
            // What stays of it says by its name that it is a part.
            let _ = fs::remove_file(&self.part);
        }
    }
}
