//! What a user may write where a model is asked for.

use crate::HubError;
use crate::catalogue::CatalogueEntry;
use crate::env::{DEFAULT_ENDPOINT, SHORT_HOST};
use std::path::{Path, PathBuf};

/// A repository on the hub and, perhaps, which of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoRef {
    /// `ORG/NAME`.
    pub repo: String,
    /// A quantisation (`Q4_K_M`) or a file name; capitals do not matter.
    pub quant: Option<String>,
}

/// A model, by one of the ways to name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelRef {
    /// A GGUF file (for a split one, its first part).
    File(PathBuf),
    /// A folder with safetensors and a config.
    Folder(PathBuf),
    /// A line of the catalogue.
    Catalogue(&'static CatalogueEntry),
    /// A repository on the hub.
    Repo(RepoRef),
}

impl ModelRef {
    /// Reads a reference: `hf:ORG/REPO[:QUANT]` or the address of its page on the hub, else a path that exists, else a catalogue name.
    ///
    /// # Errors
    /// [`HubError::Malformed`] for `hf:` and something that is no repository, [`HubError::Reference`] if it is none of these.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        if let Some(rest) = of_the_hub(text) {
            let malformed = |reason| HubError::Malformed { text: text.to_owned(), reason };
            return RepoRef::parse(&rest).map(Self::Repo).map_err(malformed);
        }
        let path = Path::new(text);
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if path.is_file() {
            return Ok(Self::File(path.to_owned()));
        }
        if let Some(entry) = CatalogueEntry::find(text) {
            return Ok(Self::Catalogue(entry));
        }
        if let Some((family, tag)) =
            text.split_once(':').filter(|(family, tag)| is_repo_part(family) && is_repo_part(tag))
        {
            let reason = format!(
                "names of ollama's library ({family} in the size {tag}) are not known here; repositories of the hub are: \
                 `yirage pull hf:ORG/REPO:QUANT`"
            );
            return Err(wrong(text, &reason));
        }
        if text.contains("://") {
            return Err(wrong(text, "addresses are not fetched; a repository on the hub is hf:ORG/REPO"));
        }
        if RepoRef::parse(text).is_ok() {
            return Err(wrong(
                text,
                &format!("there is no such file or folder (if it is on the hub, write hf:{text})"),
            ));
        }
        let reason = if text.contains(['/', '\\']) || text.to_ascii_lowercase().ends_with(".gguf") {
            "there is no such file or folder"
        } else {
            "no file, no folder and no catalogue name"
        };
        Err(wrong(text, reason))
    }
}

/// What stands behind `hf:`, or behind the hub's address in one of its spellings: what people copy from its pages. The page
/// of a file names that file.
fn of_the_hub(text: &str) -> Option<String> {
    let behind = |head: &str| {
        let (start, rest) = text.split_at_checked(head.len())?;
        start.eq_ignore_ascii_case(head).then_some(rest)
    };
    if let Some(rest) = behind("hf:") {
        return Some(rest.to_owned());
    }
    let host = DEFAULT_ENDPOINT.trim_start_matches("https://");
    let heads = [host, SHORT_HOST].into_iter().flat_map(|host| [format!("https://{host}/"), format!("{host}/")]);
    let rest = heads.into_iter().find_map(|head| behind(&head))?.trim_end_matches('/');
    let file = ["/blob/main/", "/resolve/main/"].into_iter().find_map(|part| rest.split_once(part));
    Some(match file {
        Some((repo, file)) => format!("{repo}:{}", file.split('?').next().unwrap_or(file)),
        None => rest.strip_suffix("/tree/main").unwrap_or(rest).to_owned(),
    })
}

impl RepoRef {
    /// Reads `ORG/REPO[:QUANT]`.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (repo, quant) = match text.split_once(':') {
            Some((repo, quant)) => (repo, Some(quant)),
            None => (text, None),
        };
        let Some((org, name)) = repo.split_once('/').filter(|(org, name)| !org.is_empty() && !name.contains('/'))
        else {
            return Err("a repository is ORG/REPO, with one `/`");
        };
        if !is_repo_part(org) || !is_repo_part(name) {
            return Err("ORG and REPO are letters, digits, `-`, `_` and `.`, at most 96 of them");
        }
        if quant.is_some_and(|quant| quant.is_empty() || quant.contains(':')) {
            return Err("after the second `:` stands one quantisation, as in Q4_K_M");
        }
        Ok(Self { repo: repo.to_owned(), quant: quant.map(str::to_owned) })
    }
}

/// Whether `part` may be an organisation's or repository's name, so that it is safe in a URL and as a folder name.
pub(crate) fn is_repo_part(part: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=96).contains(&part.len())
        && part.chars().all(allowed)
        && !part.starts_with(['-', '.'])
        && !part.contains("--")
        && !part.contains("..")
}

fn wrong(text: &str, reason: &str) -> HubError {
    HubError::Reference { text: text.to_owned(), reason: reason.to_owned(), names: CatalogueEntry::names() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories() {
        let repo = |text: &str| match ModelRef::parse(text) {
            Ok(ModelRef::Repo(repo)) => (repo.repo, repo.quant),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(repo("hf:Qwen/Qwen2.5-0.5B"), ("Qwen/Qwen2.5-0.5B".into(), None));
        assert_eq!(repo("HF:a/b"), ("a/b".into(), None));
        let page = format!("{DEFAULT_ENDPOINT}/a/b");
        for spelt in [&page, page.trim_start_matches("https://"), "hf.co/a/b", "https://HF.co/a/b/tree/main"] {
            assert_eq!(repo(spelt), ("a/b".into(), None), "{spelt}");
        }
        assert_eq!(repo(&format!("{page}/blob/main/m.gguf")), ("a/b".into(), Some("m.gguf".into())));
        assert_eq!(repo("hf.co/a/b:q8_0"), ("a/b".into(), Some("q8_0".into())));
        assert_eq!(repo("hf:a/b-GGUF:q4_k_m"), ("a/b-GGUF".into(), Some("q4_k_m".into())));
    }

    #[test]
    fn hostile_repositories_are_refused() {
        for text in ["hf:", "hf:a", "hf:a/", "hf:/b", "hf:../b", "hf:a/..", "hf:a/b/c", "hf:a/b:", "hf:a/b:c:d"] {
            assert!(matches!(ModelRef::parse(text), Err(HubError::Malformed { .. })), "{text}");
        }
        for text in ["hf:a/b?x", "hf:a/b c", "hf:a--b/c", "hf:a/\u{e9}", &format!("hf:a/{}", "x".repeat(97))] {
            assert!(matches!(ModelRef::parse(text), Err(HubError::Malformed { .. })), "{text}");
        }
    }

    #[test]
    fn paths_before_names_and_a_telling_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.gguf");
        std::fs::write(&file, b"GGUF").unwrap();
        assert_eq!(ModelRef::parse(file.to_str().unwrap()).unwrap(), ModelRef::File(file.clone()));
        let path = folder.path().to_str().unwrap();
        assert_eq!(ModelRef::parse(path).unwrap(), ModelRef::Folder(folder.path().to_owned()));
        let name = "SmolLM2-135M-instruct";
        assert!(matches!(ModelRef::parse(name).unwrap(), ModelRef::Catalogue(entry) if entry.name.starts_with("smol")));
        for (text, part) in [("hf:a/b/c", "with one `/`"), ("hf://a/b", "with one `/`"), ("x://a/b", "hf:ORG/REPO")] {
            let message = ModelRef::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let message = ModelRef::parse("qwen2.5:0.5b").unwrap_err().to_string();
        assert!(message.contains("qwen2.5 in the size 0.5b") && message.contains("hf:ORG/REPO:QUANT"), "{message}");
        let message = ModelRef::parse("Qwen/Qwen3-0.6B").unwrap_err().to_string();
        assert!(message.contains("write hf:Qwen/Qwen3-0.6B") && message.contains("smollm2-135m-instruct"), "{message}");
    }
}
