//! What the tests of this crate share: a hub to talk to, and one that listens.

mod server;

pub(crate) use server::{FakeHub, Trick, sha256};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use yirage_hub::{DownloadProgress, Hub, HubEnv, HubToken, Retry};

/// A hub whose surroundings are this server and this cache folder.
pub(crate) fn hub(endpoint: &str, cache: &Path) -> Hub {
    Hub::new(env(endpoint, cache))
}

/// The same, to be changed before use.
pub(crate) fn env(endpoint: &str, cache: &Path) -> HubEnv {
    let mut env = HubEnv::from_lookup(|_| None);
    env.endpoint = endpoint.to_owned();
    env.cache = cache.to_owned();
    env.token = HubToken::new("hf_secret");
    env.homeless = false;
    env.use_proxies = false;
    env.python = "no-such-python".into();
    env.retry = Retry { attempts: 3, first_delay: Duration::from_millis(1), max_delay: Duration::from_secs(2) };
    env
}

/// Remembers all it is told.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Mutex<Vec<String>>);

impl DownloadProgress for Log {
    fn start(&self, file: &str, total_bytes: Option<u64>, done_bytes: u64) {
        self.0.lock().unwrap().push(format!("start {file} {done_bytes}/{}", total_bytes.unwrap_or(0)));
    }
    fn advance(&self, _done_bytes: u64) {}
    fn finish(&self) {
        self.0.lock().unwrap().push("finish".to_owned());
    }
    fn note(&self, message: &str) {
        self.0.lock().unwrap().push(format!("note {message}"));
    }
}
