//! A beginning from a file into the cache.

use super::PrefixSize;
use super::fingerprint::ModelFingerprint;
use super::header::{BEFORE, PrefixHeader};
use crate::error::SessionError;
use crate::prefix_file_error::{PrefixFileError, PrefixFileFault};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;
use yirage_engine::Engine;
use yirage_mmap::open_regular;

/// Puts the beginning that a file has into the cache, and gives its tokens.
pub(crate) fn read(
    engine: &mut Engine,
    path: &Path,
    model: ModelFingerprint,
) -> Result<(PrefixSize, Vec<u32>), SessionError> {
    let file = open_regular(path)?;
    let found = file.metadata().map_err(PrefixFileFault::io("read it")).map_err(|fault| fault.of(path))?.len();
    restore(engine, SummedFile { path, file, found, hash: Sha256::new() }, model, None)
}

/// The same of the bytes of such a file, for requests of this salt. Errors name where they are `from`.
pub(crate) fn read_bytes(
    engine: &mut Engine,
    from: &Path,
    bytes: &[u8],
    model: ModelFingerprint,
    salt: &[u8],
) -> Result<(PrefixSize, Vec<u32>), SessionError> {
    let file = SummedFile { path: from, file: bytes, found: bytes.len() as u64, hash: Sha256::new() };
    restore(engine, file, model, Some(salt))
}

fn restore(
    engine: &mut Engine,
    mut file: SummedFile<'_, impl Read>,
    model: ModelFingerprint,
    salt: Option<&[u8]>,
) -> Result<(PrefixSize, Vec<u32>), SessionError> {
    let path = file.path;
    let (header, bytes) = file.header()?;
    let here = format!("the model {model} on {}", engine.cache_identity());
    let there = format!("the model {} on {}", header.model, header.computed_by);
    if here != there {
        return Err(PrefixFileFault::Foreign { expected: here, found: there }.of(path).into());
    }
    let tokens = header.tokens.clone();
    let mut prefix = engine.restore_prefix(header.tokens, salt.unwrap_or(&header.salt))?;
    for (name, bytes) in &header.caches {
        prefix.write(name, &file.contents(*bytes)?)?;
    }
    file.check_sum()?;
    Ok((PrefixSize { positions: prefix.finish()?, bytes }, tokens))
}

/// A file, and the sum of what was read of it.
struct SummedFile<'p, R> {
    path: &'p Path,
    file: R,
    /// Bytes that there are.
    found: u64,
    hash: Sha256,
}

impl<R: Read> SummedFile<'_, R> {
    fn fault(&self, doing: io::Error) -> PrefixFileError {
        PrefixFileFault::io("read it")(doing).of(self.path)
    }

    /// The header, and the bytes of the whole file, which has as many.
    fn header(&mut self) -> Result<(PrefixHeader, u64), PrefixFileError> {
        let found = self.found;
        let too_short = |expected| PrefixFileFault::Length { expected, found };
        if found < BEFORE {
            return Err(PrefixFileFault::NotOne.of(self.path));
        }
        let mut before = [0; BEFORE as usize];
        self.file.read_exact(&mut before).map_err(|e| self.fault(e))?;
        self.hash.update(before);
        let length = PrefixHeader::length(&before).map_err(|fault| fault.of(self.path))?;
        if found - BEFORE < length as u64 {
            return Err(too_short(BEFORE + length as u64).of(self.path));
        }
        let text = self.contents(length as u64)?;
        let header = PrefixHeader::parse(&text).map_err(|fault| fault.of(self.path))?;
        match header.file_bytes(length) {
            Some(expected) if expected == found => Ok((header, found)),
            expected => Err(too_short(expected.unwrap_or(u64::MAX)).of(self.path)),
        }
    }

    /// The next bytes, of which the file has as many: [`SummedFile::header`] has compared their sum with its length.
    fn contents(&mut self, bytes: u64) -> Result<Vec<u8>, PrefixFileError> {
        let mut contents = Vec::new();
        (&mut self.file).take(bytes).read_to_end(&mut contents).map_err(|e| self.fault(e))?;
        self.hash.update(&contents);
        Ok(contents)
    }

    fn check_sum(mut self) -> Result<(), PrefixFileError> {
        let sum: [u8; 32] = self.hash.clone().finalize().into();
        let mut found = [0; 32];
        self.file.read_exact(&mut found).map_err(|e| self.fault(e))?;
        if sum == found { Ok(()) } else { Err(PrefixFileFault::Sum.of(self.path)) }
    }
}
