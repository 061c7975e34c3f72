//! Where the hub and the cache are: read from the environment once, passed on as a value.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use yirage_mmap::{is_there, read_bytes};

use crate::limits;
use crate::pace::DownloadLimits;

/// The hub's address when `HF_ENDPOINT` names no mirror. The only place that holds it.
pub const DEFAULT_ENDPOINT: &str = "https://huggingface.co";
/// The short address that people copy from its pages.
pub(crate) const SHORT_HOST: &str = "hf.co";

/// An access token; never shown, in debug output neither.
#[derive(Clone, PartialEq, Eq)]
pub struct HubToken(String);

impl HubToken {
    /// A token from text; surrounding white space (a token file's line end) is dropped. `None` if nothing is left or
    /// it holds what a header cannot.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for HubToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How a request is tried again after an answer that may change (429, 5xx) or a cut connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Tries in all without progress in between; at least 1.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each further one.
    pub first_delay: Duration,
    /// The longest wait. A server that asks for more (`Retry-After`) is believed, and the request given up.
    pub max_delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, first_delay: Duration::from_millis(500), max_delay: Duration::from_secs(60) }
    }
}

/// Everything the hub takes from its surroundings.
#[derive(Debug, Clone)]
pub struct HubEnv {
    /// The hub's address, without a slash at the end (`HF_ENDPOINT`).
    pub endpoint: String,
    /// The cache folder that holds `models--…` (`HF_HUB_CACHE`, else `$HF_HOME/hub`).
    pub cache: PathBuf,
    /// No variable says where a cache could be, the user's home included: then nothing is read from nor written to one.
    pub homeless: bool,
    /// Sent to the hub, and to no other host (`HF_TOKEN`, else the file `$HF_HOME/token`).
    pub token: Option<HubToken>,
    /// Where a token stands that no header can carry, so that it is not sent: a variable or a file.
    pub unusable_token: Option<String>,
    /// Variables that are set to something that is no text, and are ignored.
    pub ignored: Vec<&'static str>,
    /// Never open a connection (`HF_HUB_OFFLINE`).
    pub offline: bool,
    /// A folder with model files that is looked in first (`YIRAGE_MODELS`).
    pub models: Option<PathBuf>,
    /// Whether requests go through the proxies that `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name.
    pub use_proxies: bool,
    /// The Python whose package client is the last route to the default model.
    pub python: OsString,
    /// How long connecting may take, name look-up and TLS included each.
    pub connect_timeout: Duration,
    /// How long a connection may stay silent.
    pub silence_timeout: Duration,
    /// How slow a server may be.
    pub patience: DownloadLimits,
    /// When and how often to try again.
    pub retry: Retry,
}

impl HubEnv {
    /// The process's environment.
    pub fn from_env() -> Self {
        let mut env = Self::from_lookup(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
        let home = hf_home(&|name| std::env::var_os(name).filter(|value| !value.is_empty()));
        if let (None, None, Some(home)) = (&env.token, &env.unusable_token, home) {
            env.read_token(home.join("token"));
        }
        env
    }

    /// Where weights that were repacked for this machine are kept: beside the cache, so that tools that look after the
    /// cache do not find files there that are not theirs.
    pub fn packed_weights(&self) -> PathBuf {
        self.cache.with_file_name("yirage-packed")
    }

    /// Where models are written out that a program carries within itself.
    pub(crate) fn shipped_models(&self) -> PathBuf {
        self.cache.with_file_name("yirage-shipped")
    }

    /// Where graphs that a search found for this machine are kept, beside the cache as well.
    pub fn graphs_folder(&self) -> PathBuf {
        self.cache.with_file_name("yirage-graphs")
    }

    /// The same from any table of variables; the token file is not read.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let token = lookup("HF_TOKEN").map(OsString::into_encoded_bytes);
        // An address that is no text stays one that cannot be reached: another one was not meant.
        let endpoint = lookup("HF_ENDPOINT").map(|value| value.to_string_lossy().into_owned());
        let endpoint = endpoint.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
        let offline = lookup("HF_HUB_OFFLINE");
        let ignored = offline.as_ref().filter(|value| value.to_str().is_none()).map(|_| "HF_HUB_OFFLINE");
        let home = hf_home(&lookup);
        let homeless = home.is_none() && lookup("HF_HUB_CACHE").is_none();
        let mut env = Self {
            endpoint: endpoint.trim().trim_end_matches('/').to_owned(),
            cache: lookup("HF_HUB_CACHE").map_or_else(|| home.unwrap_or_default().join("hub"), PathBuf::from),
            homeless,
            token: None,
            unusable_token: None,
            ignored: ignored.into_iter().collect(),
            offline: offline.and_then(|value| value.into_string().ok()).is_some_and(|value| is_true(&value)),
            models: lookup("YIRAGE_MODELS").map(PathBuf::from),
            use_proxies: true,
            python: lookup("YIRAGE_PYTHON").unwrap_or_else(|| OsString::from("python3")),
            connect_timeout: limits::CONNECT_TIMEOUT,
            silence_timeout: limits::SILENCE_TIMEOUT,
            patience: DownloadLimits {
                deadline: limits::DEADLINE,
                least_speed: limits::LEAST_SPEED,
                window: limits::SPEED_WINDOW,
            },
            retry: Retry::default(),
        };
        env.take_token(token, || "HF_TOKEN".to_owned());
        env
    }

    /// Takes the token from a file, if one is there; one that cannot be read is no token, which is said.
    fn read_token(&mut self, path: PathBuf) {
        match is_there(&path).and_then(|there| there.then(|| read_bytes(&path, limits::MAX_NOTE_BYTES)).transpose()) {
            Ok(found) => self.take_token(found, || path.display().to_string()),
            Err(_) => self.unusable_token = Some(path.display().to_string()),
        }
    }

    /// Takes a token as it was found at `place`. Nothing but white space is no token, and no mistake either.
    fn take_token(&mut self, found: Option<Vec<u8>>, place: impl FnOnce() -> String) {
        let Some(found) = found.filter(|bytes| !bytes.trim_ascii().is_empty()) else { return };
        self.token = str::from_utf8(&found).ok().and_then(HubToken::new);
        self.unusable_token = self.token.is_none().then(place);
    }
}

/// `HF_HOME`, else `$XDG_CACHE_HOME/huggingface`, else `~/.cache/huggingface`; `None` where there is no home.
fn hf_home(lookup: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(home) = lookup("HF_HOME") {
        return Some(PathBuf::from(home));
    }
    let home = || lookup("HOME").or_else(|| lookup("USERPROFILE")).map(|home| PathBuf::from(home).join(".cache"));
    let cache = lookup("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    Some(cache.join("huggingface"))
}

/// What the hub's own client takes for yes.
fn is_true(value: &str) -> bool {
    matches!(value.trim().to_ascii_lowercase().as_str(), "1" | "on" | "yes" | "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> HubEnv {
        let find = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        HubEnv::from_lookup(find)
    }

    #[test]
    fn defaults_follow_the_home_folder() {
        let env = env(&[("HOME", "me")]);
        assert_eq!(env.cache, PathBuf::from("me/.cache/huggingface/hub"));
        assert_eq!(env.endpoint, DEFAULT_ENDPOINT);
        assert!(!env.offline && env.token.is_none() && env.models.is_none());
    }

    #[test]
    fn each_variable_has_its_effect() {
        let all = env(&[
            ("HF_HOME", "h"),
            ("HF_ENDPOINT", "http://mirror.test/"),
            ("HF_TOKEN", "hf_x\n"),
            ("HF_HUB_OFFLINE", "ON"),
            ("YIRAGE_MODELS", "m"),
        ]);
        assert_eq!(all.cache, PathBuf::from("h/hub"));
        assert_eq!(all.endpoint, "http://mirror.test");
        assert_eq!(all.token.as_ref().map(HubToken::header).as_deref(), Some("Bearer hf_x"));
        assert!(all.offline && all.models.is_some());
        assert_eq!(env(&[("HF_HOME", "h"), ("HF_HUB_CACHE", "c")]).cache, PathBuf::from("c"));
        assert_eq!(all.packed_weights(), PathBuf::from("h/yirage-packed"));
        assert_eq!(env(&[("HF_HUB_CACHE", "c")]).packed_weights(), PathBuf::from("yirage-packed"));
        assert_eq!(env(&[("XDG_CACHE_HOME", "x")]).cache, PathBuf::from("x/huggingface/hub"));
        assert!(!env(&[("HF_HUB_OFFLINE", "0")]).offline);
    }

    #[test]
    fn without_a_home_there_is_no_cache() {
        assert!(env(&[]).homeless && env(&[("HF_TOKEN", "hf_x")]).homeless);
        for name in ["HOME", "USERPROFILE", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"] {
            assert!(!env(&[(name, "here")]).homeless, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn variables_that_are_no_text_are_told() {
        use std::os::unix::ffi::OsStringExt;
        let env = HubEnv::from_lookup(|name| {
            ["HF_HUB_OFFLINE", "HF_ENDPOINT", "HF_TOKEN"].contains(&name).then(|| OsString::from_vec(vec![0xff]))
        });
        assert_eq!(
            (env.ignored.as_slice(), env.unusable_token.as_deref()),
            (&["HF_HUB_OFFLINE"][..], Some("HF_TOKEN"))
        );
        assert_ne!(env.endpoint, DEFAULT_ENDPOINT, "another address was not meant");
    }

    #[test]
    fn a_token_is_never_shown_nor_breaks_a_header() {
        assert!(!format!("{:?}", env(&[("HF_TOKEN", "hf_secret")])).contains("secret"));
        assert!(HubToken::new("a\r\nX: y").is_none() && HubToken::new(" \n").is_none());
        let bad = env(&[("HF_TOKEN", "a\r\nX: y")]);
        assert_eq!((bad.token, bad.unusable_token.as_deref()), (None, Some("HF_TOKEN")));
        for fine in ["hf_x", " \n"] {
            assert_eq!(env(&[("HF_TOKEN", fine)]).unusable_token, None);
        }
    }
}
