//! How far a download is, told to whoever shows it.

/// Told what happens while a model is fetched. All methods may be called from the thread that fetches.
pub trait DownloadProgress {
    /// A file starts: its name, its size in bytes if the server says, and how many of them are here from before.
    fn start(&self, file: &str, total_bytes: Option<u64>, done_bytes: u64);
    /// So many bytes of the file are here now.
    fn advance(&self, done_bytes: u64);
    /// The file is complete, checked and in its place.
    fn finish(&self);
    /// One sentence about what is tried next or why something is tried again.
    fn note(&self, message: &str);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl DownloadProgress for NoProgress {
    fn start(&self, _file: &str, _total_bytes: Option<u64>, _done_bytes: u64) {}
    fn advance(&self, _done_bytes: u64) {}
    fn finish(&self) {}
    fn note(&self, _message: &str) {}
}
