//! What is checked of a library's file before the system maps it: a file that is cut off would end the process with a
//! signal when its missing pages are touched.
//!
//! Only what the loader trusts is read: the header and the program headers. Knows nothing of symbols.

use crate::error::ProbeError;
use crate::limits::MOST_HEADERS;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use yirage_mmap::open_regular;

/// Bytes of the header of a 64-bit file.
const HEADER: usize = 64;
/// Bytes of a program header.
const PROGRAM_HEADER: u16 = 56;
/// The type of a shared library.
const SHARED: u16 = 3;
/// The kind of program header that says where the table of symbols is.
const DYNAMIC: u32 = 2;

/// The number of this program's processor, where libraries are ELF files for one that is known.
const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// Checks that the file is a whole library for this processor.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(path: &Path) -> Result<(), ProbeError> {
    let unreadable = |why: String| ProbeError::Unreadable { path: path.to_path_buf(), why };
    let mut file = open_regular(path).map_err(|e| unreadable(e.to_string()))?;
    let length = file.metadata().map_err(|e| unreadable(e.to_string()))?.len();
    let mut header = [0; HEADER];
    let there = usize::try_from(length).map_or(HEADER, |n| n.min(HEADER));
    file.read_exact(&mut header[..there]).map_err(|e| unreadable(e.to_string()))?;
    let headers = of_header(path, &header[..there], length)?;
    let table = headers_of(&mut file, &headers).map_err(|e| unreadable(e.to_string()))?;
    of_table(path, &table, length)
}

/// Where the program headers lie.
struct Headers {
    first: u64,
    bytes: usize,
}

/// Checks the header, which is shorter than usual where the file is.
fn of_header(path: &Path, header: &[u8], length: u64) -> Result<Headers, ProbeError> {
    let not_an_elf = |why| ProbeError::NotAnElf { path: path.to_path_buf(), why };
    if header.get(..4) != Some(b"\x7fELF") {
        return Err(not_an_elf("it does not begin like one"));
    }
    let cut = |what, needed| ProbeError::Truncated { path: path.to_path_buf(), what, needed, found: length };
    let header: &[u8; HEADER] = header.try_into().map_err(|_| cut("the header", HEADER as u64))?;
    let found = match (header[4], header[5]) {
        (2, 1) => None,
        (1, _) => Some("32-bit"),
        (_, 2) => Some("big-endian"),
        _ => return Err(not_an_elf("its class is unknown")),
    };
    if let Some(found) = found {
        return Err(ProbeError::WrongClass { path: path.to_path_buf(), found, needed: "64-bit little-endian" });
    }
    let machine = half(header, 18);
    if let Some(needed) = MACHINE.filter(|&needed| needed != machine) {
        return Err(ProbeError::WrongMachine { path: path.to_path_buf(), found: machine, needed });
    }
    if half(header, 16) != SHARED {
        return Err(not_an_elf("it is a program or an object file, no shared library"));
    }
    let (first, size, count) = (word(header, 32), half(header, 54), half(header, 56));
    if size != PROGRAM_HEADER || count == 0 || count > MOST_HEADERS {
        return Err(not_an_elf("its program headers make no sense"));
    }
    let bytes = usize::from(size) * usize::from(count);
    let end = first.saturating_add(bytes as u64);
    if end > length {
        return Err(cut("the table of program headers", end));
    }
    let sections = u64::from(half(header, 58)) * u64::from(half(header, 60));
    let sections = word(header, 40).saturating_add(sections);
    // The loader does not read sections, but they stand last: a file without them is not whole.
    if sections > length {
        return Err(cut("the table of sections", sections));
    }
    Ok(Headers { first, bytes })
}

fn headers_of(file: &mut File, headers: &Headers) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(headers.first))?;
    let mut table = vec![0; headers.bytes];
    file.read_exact(&mut table)?;
    Ok(table)
}

/// Checks that every part that is mapped lies in the file.
fn of_table(path: &Path, table: &[u8], length: u64) -> Result<(), ProbeError> {
    let mut dynamic = false;
    for header in table.chunks_exact(usize::from(PROGRAM_HEADER)) {
        dynamic |= u32::from_le_bytes([header[0], header[1], header[2], header[3]]) == DYNAMIC;
        let end = word(header, 8).saturating_add(word(header, 32));
        if end > length {
            let (path, what) = (path.to_path_buf(), "a segment");
            return Err(ProbeError::Truncated { path, what, needed: end, found: length });
        }
    }
    match dynamic {
        true => Ok(()),
        false => Err(ProbeError::NotAnElf { path: path.to_path_buf(), why: "it has no table of symbols" }),
    }
}

/// Two bytes of a header whose length was checked.
fn half(header: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([header[at], header[at + 1]])
}

/// Eight bytes of a header whose length was checked.
fn word(header: &[u8], at: usize) -> u64 {
    header[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_header_leads_beyond_the_file() {
        // This test's own program is loaded as libraries are.
        let path = std::env::current_exe().unwrap();
        let mut head = vec![0; 4096];
        File::open(&path).unwrap().read_exact(&mut head).unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        let whole = of_header(&path, &head[..HEADER], length).unwrap();
        let table = &head[whole.first as usize..whole.first as usize + whole.bytes];
        of_table(&path, table, length).unwrap();
        let values = [0x00, 0x01, 0x7f, 0x80, 0xff];
        for (at, value) in (0..HEADER).flat_map(|at| values.map(|value| (at, value))) {
            let mut changed = head[..HEADER].to_vec();
            changed[at] = value;
            if let Ok(headers) = of_header(&path, &changed, length) {
                assert!(headers.first + headers.bytes as u64 <= length, "byte {at} is {value}");
            }
        }
        for (at, value) in (0..table.len()).flat_map(|at| values.map(|value| (at, value))) {
            let mut changed = table.to_vec();
            changed[at] = value;
            if of_table(&path, &changed, length).is_ok() {
                let ends = changed.chunks_exact(56).map(|header| word(header, 8).checked_add(word(header, 32)));
                assert!(ends.into_iter().all(|end| end.is_some_and(|end| end <= length)), "byte {at} is {value}");
            }
        }
        check(&path).unwrap();
    }
}
