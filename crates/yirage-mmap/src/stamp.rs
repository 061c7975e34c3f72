//! What tells one state of a file from another without reading it.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Which file it is, its length and its times. Two states of a file with equal stamps are the same for any purpose of caching: the time
/// of change is set by the system whenever content or metadata change, and no program can set it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FileStamp {
    /// Length in bytes.
    pub bytes: u64,
    /// When the content was last written, in nanoseconds since 1970; 0 where the system does not say.
    pub modified: i128,
    /// When content or metadata last changed, likewise; 0 on systems other than unix.
    pub changed: i128,
    /// The device it lies on and its number there; 0 on systems other than unix.
    pub file: (u64, u64),
}

impl FileStamp {
    /// The stamp in these metadata.
    pub fn of(data: &Metadata) -> FileStamp {
        let since_epoch = |time: std::time::SystemTime| match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        let modified = data.modified().map_or(0, since_epoch);
        let (changed, file) = of_unix(data);
        FileStamp { bytes: data.len(), modified, changed, file }
    }

    /// The stamp of the file that `path` leads to now.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(path: &Path) -> io::Result<FileStamp> {
        std::fs::metadata(path).map(|data| FileStamp::of(&data))
    }
}

/// Time of change, device and number.
#[cfg(unix)]
fn of_unix(data: &Metadata) -> (i128, (u64, u64)) {
    use std::os::unix::fs::MetadataExt;
    let changed = i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec());
    (changed, (data.dev(), data.ino()))
}

#[cfg(not(unix))]
fn of_unix(_data: &Metadata) -> (i128, (u64, u64)) {
    (0, (0, 0))
}
