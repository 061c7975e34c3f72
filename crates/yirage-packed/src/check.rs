//! Whether all bytes of an entry are what was written, by all threads of the machine at once.
//!
//! The mapping is read, not the file: what is touched here need not be found again when it is first computed with.

use crate::PackedError;
use crate::header::PackedHeader;
use crate::sum::range_sum;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use yirage_mmap::MappedFile;

/// Bytes of the file that are compared at once.
struct CheckedRange<'a> {
    first: u64,
    end: u64,
    /// Image and checksum; none for the zeros between images.
    of: Option<(&'a str, &'a str)>,
}

impl CheckedRange<'_> {
    fn check(&self, map: &MappedFile) -> Result<(), PackedError> {
        let bytes = &map[self.first as usize..self.end as usize];
        let (first, end, path) = (self.first, self.end, || map.path().to_path_buf());
        let Some((image, wanted)) = self.of else {
            let zeros = bytes.iter().all(|&byte| byte == 0);
            return if zeros { Ok(()) } else { Err(PackedError::Gap { path: path(), first, end }) };
        };
        let found = range_sum(bytes);
        if found == wanted {
            return Ok(());
        }
        let (image, wanted) = (image.to_owned(), wanted.to_owned());
        Err(PackedError::Damaged { path: path(), image, first, end, wanted, found })
    }
}

/// Everything behind the head, which has a checksum of its own: ranges of images and the zeros before each.
fn pieces<'a>(header: &'a PackedHeader, head: u64) -> Vec<CheckedRange<'a>> {
    let mut pieces = Vec::new();
    let mut at = head;
    for image in &header.images {
        pieces.push(CheckedRange { first: at, end: image.offset, of: None });
        at = image.offset + image.bytes;
        for (i, sum) in image.sums.iter().enumerate() {
            let first = image.offset + i as u64 * header.range_bytes;
            let end = at.min(first.saturating_add(header.range_bytes));
            pieces.push(CheckedRange { first, end, of: Some((&image.name, sum)) });
        }
    }
    pieces
}

/// Compares all bytes of the entry `map`, whose head was read already. `progress` gets the bytes compared, and of all.
///
/// # Errors
/// The first of [`PackedError::Damaged`], [`PackedError::Gap`] and [`PackedError::Map`] that any thread met.
pub(crate) fn check(
    map: &MappedFile,
    header: &PackedHeader,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), PackedError> {
    let (pieces, total) = (pieces(header, PackedHeader::bytes_of_head(map)), map.len() as u64);
    let (next, done, failed) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::new(None));
    let work = |report: &mut dyn FnMut(u64)| {
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = piece.check(map) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                // Nobody begins another one.
                next.store(pieces.len(), Ordering::Relaxed);
            }
            let bytes = piece.end - piece.first;
            report(done.fetch_add(bytes, Ordering::Relaxed) + bytes);
        }
    };
    let ranges = pieces.iter().filter(|piece| piece.of.is_some()).count();
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(ranges);
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where no thread can be started, those that there are do its part.
            let _ = Builder::new().name("yirage-check".into()).spawn_scoped(scope, || work(&mut |_| ()));
        }
        work(&mut |done| progress(done, total));
    });
    // The last piece may have been another thread's.
    progress(done.into_inner(), total);
    // What could not be read was not compared, whatever came of it.
    map.intact()?;
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Checks the entry at `path` completely and gives its bytes.
///
/// # Errors
/// The first of [`PackedError::Map`], [`PackedError::Header`], [`PackedError::Version`], [`PackedError::Damaged`] and
/// [`PackedError::Gap`].
pub fn verify(path: &Path) -> Result<u64, PackedError> {
    let map = MappedFile::open(path)?;
    let header = PackedHeader::parse(&map, map.len() as u64, &path.display().to_string())?;
    map.will_need();
    check(&map, &header, &mut |_, _| ())?;
    Ok(map.len() as u64)
}
