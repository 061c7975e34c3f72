//! Giving the pages of a file mapping back to the system.

use std::ops::Range;

/// The whole pages inside `range` of a mapping of `len` bytes, as byte offsets. The mapping starts at a page boundary;
/// its last page counts as whole when the range reaches the end of the file, because nothing lies behind it.
#[cfg(any(unix, test))]
fn whole_pages(range: Range<usize>, len: usize, page: usize) -> Range<usize> {
    let end = range.end.min(len);
    let start = range.start.min(end).next_multiple_of(page);
    let end = if end == len { len } else { end / page * page };
    start..end.max(start)
}

#[cfg(unix)]
pub(crate) fn release(map: &memmap2::Mmap, range: Range<usize>) -> usize {
    let pages = whole_pages(range, map.len(), page_size());
    if pages.is_empty() {
        return 0;
    }
    // SAFETY: the range lies inside the mapping and starts at a page boundary. The mapping is shared, read-only and
    // backed by a file, so dropping its pages loses nothing: the next access faults the same bytes in again. Slices
    // into it therefore stay valid and keep their content.
    let advised = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, pages.start, pages.len()) };
    if advised.is_ok() { pages.len() } else { 0 }
}

/// Elsewhere the system's own page replacement has to do.
#[cfg(not(unix))]
pub(crate) fn release(_map: &memmap2::Mmap, _range: Range<usize>) -> usize {
    0
}

#[cfg(unix)]
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf reads a constant of the running system and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // 64 KiB is a multiple of every smaller page size in use, so it is safe where the answer is missing.
    usize::try_from(size).ok().filter(|&n| n > 0).unwrap_or(65536)
}

#[cfg(test)]
mod tests {
    use super::whole_pages;

    #[test]
    fn only_pages_wholly_inside_are_taken() {
        let p = 4096;
        assert_eq!(whole_pages(0..8192, 100_000, p), 0..8192);
        assert_eq!(whole_pages(1..8192, 100_000, p), 4096..8192);
        assert_eq!(whole_pages(1..8191, 100_000, p), 4096..4096);
        assert_eq!(whole_pages(0..4095, 100_000, p), 0..0);
        assert_eq!(whole_pages(98_304..100_000, 100_000, p), 98_304..100_000);
        assert_eq!(whole_pages(5000..usize::MAX, 100_000, p), 8192..100_000);
    }

    #[test]
    fn backwards_and_outside_ranges_are_empty() {
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = 9000..10;
        assert!(whole_pages(backwards, 100_000, 4096).is_empty());
        assert!(whole_pages(200_000..300_000, 100_000, 4096).is_empty());
        assert!(whole_pages(99_999..100_000, 100_000, 4096).is_empty());
        assert!(whole_pages(0..0, 0, 4096).is_empty());
    }
}
