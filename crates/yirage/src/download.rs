//! Downloads shown on the console.

use crate::console::{Console, bytes};
use crate::options::Layers;
use indicatif::ProgressBar;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::Instant;
use yirage_hub::{DownloadProgress, Hub, HubEnv, Shipped};

/// The hub that the environment and the options describe.
pub(crate) fn hub(layers: &Layers) -> Hub {
    let mut env = HubEnv::from_env();
    env.models = layers.text("models").map(Into::into);
    if let Some(python) = layers.text("python") {
        env.python = python.into();
    }
    Hub::new(env).with_shipped(SHIPPED)
}

/// The models that this program carries within itself.
#[cfg(feature = "stories")]
const SHIPPED: &[Shipped] = &[Shipped {
    name: yirage_stories::NAME,
    summary: yirage_stories::SUMMARY,
    licence: yirage_stories::LICENCE,
    file: yirage_stories::FILE,
    bytes: yirage_stories::GGUF,
}];
#[cfg(not(feature = "stories"))]
const SHIPPED: &[Shipped] = &[];

/// The model that this program carries within itself, if it does.
pub(crate) fn shipped() -> Option<&'static Shipped> {
    SHIPPED.first()
}

/// The hub, for commands that may fetch a model: says what would keep it from being fetched.
pub(crate) fn fetching_hub(layers: &Layers, console: &Console) -> Hub {
    let hub = hub(layers);
    if let Some(place) = &hub.env().unusable_token {
        console.note(&format!("{place}: the token holds characters that no request can carry; it is not sent"));
    }
    for name in &hub.env().ignored {
        console.note(&format!("{name} holds bytes that are no UTF-8 text; it is ignored"));
    }
    hub
}

/// Shows a download: a line a file, and a bar on a terminal.
pub(crate) struct DownloadDisplay<'a> {
    console: &'a Console,
    cache: PathBuf,
    bar: RefCell<ProgressBar>,
    began: Cell<Instant>,
}

impl<'a> DownloadDisplay<'a> {
    /// Shows on `console` what `hub` fetches.
    pub(crate) fn on(console: &'a Console, hub: &Hub) -> DownloadDisplay<'a> {
        let (cache, bar) = (hub.env().cache.clone(), RefCell::new(ProgressBar::hidden()));
        DownloadDisplay { console, cache, bar, began: Cell::new(Instant::now()) }
    }
}

impl DownloadProgress for DownloadDisplay<'_> {
    fn start(&self, file: &str, total_bytes: Option<u64>, done_bytes: u64) {
        if done_bytes > 0 {
            self.console.note(&format!("{file}: {} are here from before", bytes(done_bytes)));
        }
        let (size, cache) = (total_bytes.map_or("size unknown".into(), bytes), self.cache.display());
        self.console.note(&format!("fetching {file} ({size}); later starts find it in {cache}"));
        self.began.set(Instant::now());
        self.bar.replace(self.console.bar(&format!("fetching {file}"), total_bytes.unwrap_or(0), done_bytes));
    }

    fn advance(&self, done_bytes: u64) {
        self.bar.borrow().set_position(done_bytes);
    }

    fn finish(&self) {
        self.bar.borrow().finish_and_clear();
        self.console.note(&format!("fetched in {:.1} s", self.began.get().elapsed().as_secs_f64()));
    }

    fn note(&self, message: &str) {
        self.bar.borrow().suspend(|| self.console.note(message));
    }
}
