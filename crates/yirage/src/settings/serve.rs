//! Whom a server listens to, and how much it takes at once.

use crate::failure::CliFailure;
use crate::options::Layers;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;
use yirage_engine::limits::MAX_SEQS;
use yirage_engine::{CacheSize, EngineOptions};
use yirage_serve::{ApiKeys, PrefillServer, ServeOptions, Tls};

/// Bytes of a GiB.
const GIB: f64 = (1u64 << 30) as f64;

/// Bytes of a file with a key.
const KEY_BYTES: u64 = 64 << 10;

/// Sequences of full length that the cache holds where nobody says how much it may take.
const SEQUENCES: u32 = 4;

/// Bytes that the cache of one sequence of the longest context may take where nobody says how long that is, and nobody how
/// much the cache may take.
const CONTEXT_BYTES: u64 = 1 << 30;

/// Options of a server, and what the user should know of them.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(crate) fn serve(layers: &Layers) -> Result<(ServeOptions, Vec<String>), CliFailure> {
    let (keys, notes) = match layers.text("api-key-file") {
        None => (ApiKeys::default(), Vec::new()),
        Some(path) => ApiKeys::read(Path::new(path))
            .map_err(|e| CliFailure::Usage(format!("{}: {e}", layers.label("api-key-file"))))?,
    };
    let usual = ServeOptions::default();
    let options = ServeOptions {
        address: address(layers)?,
        keys,
        tls: tls(layers)?,
        insecure: layers.switch("insecure")?,
        allowed_hosts: layers.texts("allowed-host").to_vec(),
        allowed_origins: layers.texts("allowed-origin").to_vec(),
        max_queued: layers.number("max-queued", "a whole number", |_| true)?.unwrap_or(usual.max_queued),
        max_queued_tokens: layers.number("max-queued-tokens", "a whole number", |_| true)?,
        request_time: seconds(layers, "request-time")?,
        drain_time: seconds(layers, "drain-time")?.unwrap_or(usual.drain_time),
        stuck_after: seconds(layers, "stuck-after")?.unwrap_or(usual.stuck_after),
        idle_unload: seconds(layers, "idle-unload")?,
        when_idle: Some(yirage_process::give_back_free_memory),
        memory: gibibytes(layers, "models-memory")?,
        ..usual
    };
    Ok((options, notes))
}

/// Who computes long prompts for the server, where somebody does.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option, also where one is given of a server that is not; a file that cannot be read.
pub(crate) fn prefill_server(layers: &Layers) -> Result<Option<PrefillServer>, CliFailure> {
    let expected = "a number of tokens from 1 on, beside --prefill-server";
    let address = layers.text("prefill-server");
    let least = layers.number("prefill-least", expected, |n: &usize| *n > 0)?.unwrap_or(256);
    let Some(address) = address else {
        let alone = ["prefill-least", "prefill-key-file"].into_iter().find(|name| layers.raw_value(name).is_some());
        let what = "is for the server of --prefill-server, which is not given";
        return alone.map_or(Ok(None), |name| Err(CliFailure::Usage(format!("{}: {what}", layers.label(name)))));
    };
    let key = layers.text("prefill-key-file").map(|path| yirage_mmap::read_text(Path::new(path), KEY_BYTES));
    let key = key.transpose()?.map(|key| key.trim().to_owned());
    let server = PrefillServer::new(address, least, key);
    server.map(Some).map_err(|error| CliFailure::Usage(format!("{}: {error}", layers.label("prefill-server"))))
}

/// The engine's options for many requests at once.
///
/// # Errors
/// As [`serve`].
pub(crate) fn serve_engine(layers: &Layers, options: EngineOptions) -> Result<EngineOptions, CliFailure> {
    let expected = format!("a number from 1 to {MAX_SEQS}");
    let max_seqs = layers.number("max-seqs", &expected, |n| (1..=MAX_SEQS).contains(n))?.unwrap_or(options.max_seqs);
    let step = layers.number::<f64>("max-step-ms", "a number above 0", |ms| *ms > 0.0 && *ms <= 1e9)?;
    let cache = gibibytes(layers, "kv-memory")?.map_or(CacheSize::Sequences(SEQUENCES), CacheSize::Bytes);
    // Agents send long prompts: a server takes what the model was made for, as far as its cache may grow.
    let context_within = Some(if let CacheSize::Bytes(bytes) = cache { bytes } else { CONTEXT_BYTES });
    let max_step = step.map(|ms| Duration::from_secs_f64(ms / 1e3));
    // Pictures may come with any request.
    Ok(EngineOptions { max_seqs, max_step, cache, context_within, embedded: true, ..options })
}

/// Both files or none: half of the pair is a slip that would leave the server without TLS.
fn tls(layers: &Layers) -> Result<Option<Tls>, CliFailure> {
    let missing = |given, wanted| {
        CliFailure::Usage(format!(
            "{}: --{wanted} is missing; TLS needs a certificate and its key",
            layers.label(given)
        ))
    };
    match (layers.text("tls-cert"), layers.text("tls-key")) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("tls-cert", "tls-key")),
        (None, Some(_)) => Err(missing("tls-key", "tls-cert")),
        (Some(certificate), Some(key)) => {
            let tls = Tls::read(Path::new(certificate), Path::new(key));
            tls.map(Some).map_err(|e| CliFailure::Usage(format!("{}: {e}", layers.label("tls-cert"))))
        }
    }
}

/// Where to listen.
///
/// # Errors
/// As [`serve`].
pub(crate) fn address(layers: &Layers) -> Result<SocketAddr, CliFailure> {
    let port = layers.number::<u16>("port", "a number from 0 to 65535", |_| true)?.unwrap_or(0);
    let host = layers.text("host").unwrap_or_default();
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::from((address, port)));
    }
    let found = (host, port).to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| layers.wrong("host", "an address such as 127.0.0.1, or a name of this machine"))
}

/// An option that is a time.
///
/// # Errors
/// As [`serve`].
pub(crate) fn seconds(layers: &Layers, name: &str) -> Result<Option<Duration>, CliFailure> {
    let given = layers.number::<f64>(name, "a number of seconds", |s| (0.0..=1e9).contains(s))?;
    Ok(given.map(Duration::from_secs_f64))
}

fn gibibytes(layers: &Layers, name: &str) -> Result<Option<u64>, CliFailure> {
    let given = layers.number::<f64>(name, "a number of GiB above 0", |gib| *gib > 0.0 && *gib <= 1e6)?;
    Ok(given.map(|gib| (gib * GIB) as u64))
}
