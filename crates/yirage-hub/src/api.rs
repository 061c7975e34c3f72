//! What the hub says about a repository and its files.

use crate::HubError;
use crate::cache::{is_inner_path, is_plain_name};
use crate::http::{FetchMode, Http, header};
use crate::limits::MAX_FILES;
use crate::progress::DownloadProgress;
use serde::Deserialize;

/// A repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepoInfo {
    /// The commit.
    pub(crate) commit: String,
    /// All files.
    pub(crate) files: Vec<String>,
    /// Names that would leave a folder or that no file should have: those files are left out.
    pub(crate) left_out: Vec<String>,
}

/// A file that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    /// Its name in the repository.
    pub(crate) name: String,
    /// Where its bytes are.
    pub(crate) url: String,
    /// What its blob is called.
    pub(crate) etag: String,
    /// Its size, if the server says.
    pub(crate) bytes: Option<u64>,
    /// Its checksum: for large files the entity tag is one.
    pub(crate) sha256: Option<String>,
}

#[derive(Deserialize)]
struct HubModelResponse {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

/// Asks for the files of `repo` at `revision`.
pub(crate) fn repo_info(
    http: &Http,
    repo: &str,
    revision: &str,
    progress: &dyn DownloadProgress,
) -> Result<RepoInfo, HubError> {
    let url = format!("{}/api/models/{repo}/revision/{revision}", http.endpoint());
    let text = http.text(&url, progress)?;
    let wrong = |reason: String| HubError::Protocol { url: url.clone(), reason };
    let answer: HubModelResponse =
        serde_json::from_str(&text).map_err(|error| wrong(format!("not a repository: {error}")))?;
    if !is_plain_name(&answer.sha) {
        return Err(wrong(format!("`{}` is no commit", answer.sha.escape_debug())));
    }
    if answer.siblings.len() > MAX_FILES {
        return Err(wrong(format!("{} files, more than {MAX_FILES}", answer.siblings.len())));
    }
    let names = answer.siblings.into_iter().map(|file| file.rfilename);
    let (files, left_out) = names.partition(|name| is_inner_path(name));
    Ok(RepoInfo { commit: answer.sha, files, left_out })
}

/// Asks for size and checksum of one file at a commit.
pub(crate) fn file_info(
    http: &Http,
    repo: &str,
    commit: &str,
    name: &str,
    progress: &dyn DownloadProgress,
) -> Result<RemoteFile, HubError> {
    let url = format!("{}/{repo}/resolve/{commit}/{}", http.endpoint(), escape_path(name));
    let answer = http.ask(&url, FetchMode::Headers, &http.pace(), progress)?;
    let headers = answer.headers();
    let redirected = answer.status().is_redirection();
    let etag = header(headers, "x-linked-etag").or_else(|| header(headers, "etag")).map(plain_etag);
    let Some(etag) = etag.filter(|etag| is_plain_name(etag)) else {
        return Err(HubError::Protocol { url, reason: "the answer has no usable entity tag".to_owned() });
    };
    // The length of a redirect's own text is not the file's.
    let length = header(headers, "content-length").filter(|_| !redirected);
    let bytes = header(headers, "x-linked-size").or(length).and_then(|text| text.parse().ok());
    let sha256 = is_sha256(&etag).then(|| etag.to_ascii_lowercase());
    Ok(RemoteFile { name: name.to_owned(), url, etag, bytes, sha256 })
}

/// Whether an entity tag is a SHA-256: so it is for every large file.
pub(crate) fn is_sha256(etag: &str) -> bool {
    etag.len() == 64 && etag.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn plain_etag(etag: &str) -> String {
    etag.trim().trim_start_matches("W/").trim_matches('"').to_owned()
}

/// A file's name with everything encoded that means something in a URL.
fn escape_path(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_paths() {
        assert_eq!(plain_etag("W/\"abc\""), "abc");
        assert_eq!(plain_etag("\"abc\""), "abc");
        assert!(is_sha256(&"aB".repeat(32)) && !is_sha256(&"ab".repeat(20)) && !is_sha256(&"zz".repeat(32)));
        assert_eq!(escape_path("a b/c#d?e%\u{e9}"), "a%20b/c%23d%3Fe%25%C3%A9");
    }
}
