//! One way of opening files that others made.
//!
//! What lies under a name is looked at before it is opened and again afterwards: opening a pipe would wait for a writer,
//! a device may never end, and between two looks a name may come to lead elsewhere. Opening never waits. Reading takes a
//! limit, which holds for a file that grows meanwhile as well.

use std::fmt;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file could not be read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file could not be opened.
    #[error("{}: cannot open: {source}; check the path and its permissions", path.display())]
    Open {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something other than a file lies there.
    #[error("{}: not a regular file, but {kind}; give the path of a file", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
        /// What it leads to.
        kind: FileKind,
    },
    /// Something that neither is a file nor ends like one lies there.
    #[error("{}: neither a file nor a pipe, but {kind}; give the path of a file, or - for standard input",
            path.display())]
    NotReadable {
        /// The path asked for.
        path: PathBuf,
        /// What it leads to.
        kind: FileKind,
    },
    /// There is more than the reader takes.
    #[error("{}: {found} bytes exceed the limit of {limit} for such a file; give the right file, or a shorter one",
            path.display())]
    TooLong {
        /// The file asked for.
        path: PathBuf,
        /// Bytes that were found: where the length is not known before, one more than the limit.
        found: u64,
        /// Bytes that are taken at most.
        limit: u64,
    },
    /// Reading failed.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A text is not UTF-8.
    #[error("{}: not UTF-8 text: the byte at offset {offset} belongs to no character; save the file as UTF-8",
            path.display())]
    Utf8 {
        /// The file asked for.
        path: PathBuf,
        /// Bytes before the first that is wrong.
        offset: usize,
    },
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A named pipe, or the end of one that a shell made.
    Pipe,
    /// A socket.
    Socket,
    /// A device that gives characters, like a terminal or `/dev/zero`.
    CharacterDevice,
    /// A device that gives blocks, like a disk.
    BlockDevice,
    /// Something that this system has and we do not know.
    Other,
}

impl FileKind {
    fn of(ty: FileType) -> FileKind {
        match () {
            () if ty.is_file() => FileKind::File,
            () if ty.is_dir() => FileKind::Folder,
            () => special(ty),
        }
    }
}

#[cfg(unix)]
fn special(ty: FileType) -> FileKind {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if ty.is_fifo() => FileKind::Pipe,
        () if ty.is_socket() => FileKind::Socket,
        () if ty.is_char_device() => FileKind::CharacterDevice,
        () if ty.is_block_device() => FileKind::BlockDevice,
        () => FileKind::Other,
    }
}

#[cfg(not(unix))]
fn special(_: FileType) -> FileKind {
    FileKind::Other
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::File => "a file",
            FileKind::Folder => "a folder",
            FileKind::Pipe => "a pipe",
            FileKind::Socket => "a socket",
            FileKind::CharacterDevice => "a character device",
            FileKind::BlockDevice => "a block device",
            FileKind::Other => "something else",
        })
    }
}

/// Opens the regular file at `path`, without ever waiting.
///
/// # Errors
/// [`FileError::Open`]; [`FileError::NotAFile`] for everything else that may lie there.
pub fn open_regular(path: &Path) -> Result<File, FileError> {
    open_checked(path).map(|(file, _)| file)
}

/// The same with what the system says of the opened file.
pub(crate) fn open_checked(path: &Path) -> Result<(File, Metadata), FileError> {
    let error = |source| FileError::Open { path: path.to_path_buf(), source };
    let regular = |data: &Metadata| match FileKind::of(data.file_type()) {
        FileKind::File => Ok(()),
        kind => Err(FileError::NotAFile { path: path.to_path_buf(), kind }),
    };
    // Opening a device can have effects of its own, so the name is looked at first.
    regular(&fs::metadata(path).map_err(error)?)?;
    let file = without_waiting().open(path).map_err(error)?;
    let data = file.metadata().map_err(error)?;
    regular(&data)?;
    Ok((file, data))
}

/// Options of opening for reading that return at once even where a pipe has taken the file's place.
#[cfg(unix)]
fn without_waiting() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

#[cfg(not(unix))]
fn without_waiting() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

/// The bytes of the regular file at `path`, which may have `limit` of them at most.
///
/// # Errors
/// [`FileError`]: nothing longer than `limit` is read.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let (file, data) = open_checked(path)?;
    if data.len() > limit {
        return Err(FileError::TooLong { path: path.to_path_buf(), found: data.len(), limit });
    }
    read_within(file, path, limit)
}

/// The text of the regular file at `path`, which may have `limit` bytes at most.
///
/// # Errors
/// As [`read_bytes`]; [`FileError::Utf8`] with the place.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    text(read_bytes(path, limit)?, path)
}

/// The same as [`read_bytes`] for a file that may be absent: `None` where nothing has the name. A link that leads
/// nowhere is there, and an error.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_bytes_if_there(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    if is_there(path)? { read_bytes(path, limit).map(Some) } else { Ok(None) }
}

/// The same as [`read_text`] for a file that may be absent, as [`read_bytes_if_there`] says.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_if_there(path: &Path, limit: u64) -> Result<Option<String>, FileError> {
    if is_there(path)? { read_text(path, limit).map(Some) } else { Ok(None) }
}

/// Whether anything has the name `path`, be it what one looks for or not: reading it then says what is wrong.
///
/// # Errors
/// [`FileError::Open`] where the system does not say, as in a folder that may not be searched.
pub fn is_there(path: &Path) -> Result<bool, FileError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(FileError::Open { path: path.to_path_buf(), source }),
    }
}

/// The text of a file that a user names and may as well pipe: from a regular file, from a named pipe or a shell's
/// process substitution. A pipe is waited for, as long as its writer takes; devices and sockets are refused.
///
/// # Errors
/// [`FileError::NotReadable`] for what is refused; else as [`read_text`].
pub fn read_piped_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let error = |source| FileError::Open { path: path.to_path_buf(), source };
    let piped = |data: &Metadata| match FileKind::of(data.file_type()) {
        FileKind::File => Ok(false),
        FileKind::Pipe => Ok(true),
        kind => Err(FileError::NotReadable { path: path.to_path_buf(), kind }),
    };
    if !piped(&fs::metadata(path).map_err(error)?)? {
        return read_text(path, limit);
    }
    let file = File::open(path).map_err(error)?;
    piped(&file.metadata().map_err(error)?)?;
    text(read_within(file, path, limit)?, path)
}

/// Everything that `input` has, if that is `limit` bytes at most; `path` is how errors call it.
///
/// # Errors
/// [`FileError::TooLong`], [`FileError::Read`].
pub fn read_within(input: impl Read, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let more = limit.saturating_add(1);
    input.take(more).read_to_end(&mut bytes).map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
    match bytes.len() as u64 {
        found if found > limit => Err(FileError::TooLong { path: path.to_path_buf(), found, limit }),
        _ => Ok(bytes),
    }
}

fn text(bytes: Vec<u8>, path: &Path) -> Result<String, FileError> {
    String::from_utf8(bytes)
        .map_err(|e| FileError::Utf8 { path: path.to_path_buf(), offset: e.utf8_error().valid_up_to() })
}
