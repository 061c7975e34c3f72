//! The mark beside an entry, `KEY.used`: its time is when the entry was last used, its content what was checked since
//! the machine was started.
//!
//! Nothing of a mark is interpreted. It vouches for an entry if it is, byte for byte, the text that the entry as it is now
//! would get: boot, device and number of the file, length, times, checksum of the head. The system sets a file's time of
//! change at every write, and no program can set it back, so an entry that was written to has another text. Its clock
//! ticks coarsely, though: a mark is written only for entries whose last change was over for [`limits::SETTLED`] when the
//! check began ([`limits::SETTLED_FINE`] where times have parts of a second), so that any later change has a later time.

use crate::{PackedError, limits};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_mmap::{FileStamp, read_bytes, read_text};

/// How every mark begins.
pub(crate) const HEAD: &str = "yirage: this entry was used\n";

/// Where the system says which start of the machine this is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The mark of one entry.
pub(crate) struct Mark {
    path: PathBuf,
    /// What vouches for the entry; none where the system does not tell its starts or its files' changes apart.
    text: Option<String>,
    changed: i128,
}

impl Mark {
    /// The mark at `path`, of an entry with this stamp and this checksum of its head.
    pub(crate) fn new(path: PathBuf, stamp: &FileStamp, head: &[u8]) -> Mark {
        let boot = if stamp.changed == 0 { None } else { read_text(Path::new(BOOT), limits::MARK_BYTES).ok() };
        let FileStamp { bytes, modified, changed, file: (device, number) } = *stamp;
        let head: String = head.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = |boot: String| {
            let boot = boot.trim();
            format!(
                "{HEAD}checked in boot {boot}\nfile {device}:{number}, {bytes} bytes, written {modified}, changed {changed}\n\
                 head {head}\n"
            )
        };
        Mark { path, text: boot.map(text), changed }
    }

    /// Whether the entry was checked since the machine was started, and not changed since.
    pub(crate) fn vouches(&self) -> bool {
        let Some(text) = &self.text else { return false };
        is_file(&self.path) && read_text(&self.path, limits::MARK_BYTES).is_ok_and(|found| found == *text)
    }

    /// Notes that the entry is used now; that it is whole as well, where it was checked from `checked` on and the clock
    /// tells later changes apart.
    ///
    /// # Errors
    /// [`PackedError::Foreign`] where something else has the mark's name, [`PackedError::Io`].
    pub(crate) fn set(&self, checked: SystemTime) -> Result<(), PackedError> {
        let began = checked.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i128);
        let ticks_in_seconds = self.changed % 1_000_000_000 == 0;
        let wait = if ticks_in_seconds { limits::SETTLED } else { limits::SETTLED_FINE };
        let settled = began.saturating_sub(self.changed) > wait.as_nanos() as i128;
        let text = self.text.as_deref().filter(|_| settled).unwrap_or(HEAD);
        match fs::symlink_metadata(&self.path) {
            Ok(_) if !is_ours(&self.path) => return Err(PackedError::Foreign { path: self.path.clone() }),
            Ok(_) => fs::remove_file(&self.path).map_err(PackedError::io("remove", &self.path))?,
            Err(_) => {}
        }
        // A new file: whatever the name leads to meanwhile is never written to.
        match File::options().create_new(true).write(true).open(&self.path) {
            // Another process was faster.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            file => {
                file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(PackedError::io("write", &self.path))
            }
        }
    }

    /// Notes that the entry is used now. A folder that cannot be written to is used all the same; its entries then go in
    /// the order they came.
    pub(crate) fn touch(&self) {
        let _ = File::options().append(true).open(&self.path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Whether the file at `path` is a mark, or was to be one when its writer was ended.
pub(crate) fn is_ours(path: &Path) -> bool {
    let begins = |found: Vec<u8>| found.is_empty() || found.starts_with(HEAD.as_bytes());
    is_file(path) && read_bytes(path, limits::MARK_BYTES).is_ok_and(begins)
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_file())
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)] // a test may stop at anything
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_change_that_is_too_near_to_tell_a_later_one_is_not_vouched_for() {
        let folder = tempfile::tempdir().unwrap();
        let vouched = |changed: u64, passed: Duration| {
            let stamp = FileStamp { bytes: 1, modified: 0, changed: changed.into(), file: (1, 1) };
            let mark = Mark::new(folder.path().join("key.used"), &stamp, &[7]);
            mark.set(UNIX_EPOCH + Duration::from_nanos(changed) + passed).unwrap();
            mark.vouches()
        };
        const SECONDS: u64 = 5_000_000_000;
        let (coarse, fine) = (limits::SETTLED, limits::SETTLED_FINE);
        for (changed, wait) in [(SECONDS, coarse), (SECONDS + 1, fine)] {
            assert!(!vouched(changed, wait / 2) && !vouched(changed, wait) && vouched(changed, wait * 2));
        }
    }
}
