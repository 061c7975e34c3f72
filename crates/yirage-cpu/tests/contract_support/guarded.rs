//! Memory between two pages that nobody may touch: a read or a write outside of it ends the test.

use std::ptr::null_mut;

/// `len` bytes, flush against the page before or behind them.
pub(crate) struct Guarded {
    map: *mut u8,
    mapped: usize,
    start: *mut u8,
    len: usize,
}

impl Guarded {
    /// Filled with a byte.
    pub(crate) fn new(len: usize, behind: bool, fill: u8) -> Guarded {
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let inner = len.next_multiple_of(page).max(page);
        let mapped = inner + 2 * page;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        let map = unsafe { libc::mmap(null_mut(), mapped, access, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let map = map.cast::<u8>();
        for guard in [map, map.wrapping_add(page + inner)] {
            assert_eq!(unsafe { libc::mprotect(guard.cast(), page, libc::PROT_NONE) }, 0);
        }
        let start = map.wrapping_add(page + if behind { inner - len } else { 0 });
        unsafe { start.write_bytes(fill, len) };
        Guarded { map, mapped, start, len }
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.map.cast(), self.mapped) };
    }
}
