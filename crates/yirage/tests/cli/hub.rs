//! `pull`, `list`, `rm` and `run` with a hub on the loopback interface: the way that a model takes from there to here.

use crate::hub_server::{FakeHub, Trick, sha256};
use crate::support::{Ran, Run, bedtime, keys, yirage};
use crate::template::named_templates;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const FILE: &str = "/o/r/resolve/c0ffee/m-Q8_0.gguf";
const LISTING: &str = "/api/models/o/r/revision/main";
const MODEL: &str = "hf:o/r:q8_0";

/// A run against `server` with its own home of the hub's clients.
fn online(server: &FakeHub, home: &Path, arguments: &[&str]) -> Run {
    let run = yirage(arguments).env("HF_HUB_OFFLINE", "").env("HF_ENDPOINT", &server.address);
    run.env("HF_HOME", home.to_str().unwrap())
}

fn bytes() -> Vec<u8> {
    (0..3_000_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn status(status: u16, headers: &[(&str, &str)]) -> Trick {
    Trick::Status(status, headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn fails(ran: &Ran, parts: &[&str]) {
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
    assert!(!ran.err.contains("secret"), "a token is nobody's business: {}", ran.err);
}

#[test]
fn a_model_is_pulled_listed_and_removed() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body), ("m-Q4_0.gguf", b"smaller"), ("README.md", b"hello")]);
    let run = |arguments: &[&str]| online(&server, home.path(), arguments);

    let pulled = run(&["pull", MODEL, "--json"]).json();
    let folder = home.path().join("hub/models--o--r");
    let path = folder.join("snapshots/c0ffee/m-Q8_0.gguf");
    assert_eq!(pulled, serde_json::json!({"model": "o/r:q8_0", "path": path}));
    assert_eq!(fs::read(&path).unwrap(), body);
    assert_eq!(fs::read(folder.join("blobs").join(sha256(&body))).unwrap(), body);
    assert_eq!(fs::read_to_string(folder.join("refs/main")).unwrap(), "c0ffee");
    let again = run(&["pull", MODEL]).ran();
    assert_eq!((again.code, again.out), (0, format!("{}\n", path.display())));
    assert_eq!(server.ranges(FILE).len(), 1, "what is here and whole is not fetched again");

    let listed = run(&["list", "--json"]).json();
    assert_eq!(keys(&listed), ["cache", "cached", "catalogue", "shipped"]);
    let file = serde_json::json!({"name": "m-Q8_0.gguf", "path": path, "bytes": body.len()});
    let model = serde_json::json!({"model": "hf:o/r", "bytes": body.len(), "unfinished_bytes": 0, "links_out": 0, "files": [file]});
    assert_eq!(listed["cached"], serde_json::json!([model]));
    let plain = run(&["list"]).ran().out;
    assert!(plain.contains("hf:o/r  2.9 MiB\n    m-Q8_0.gguf  2.9 MiB\n") && !plain.contains("unfinished"), "{plain}");

    let removed = run(&["rm", MODEL, "--json"]).json();
    assert_eq!(removed, serde_json::json!({"model": MODEL, "files": 1, "bytes": body.len()}));
    assert!(!path.exists() && !folder.join("blobs").join(sha256(&body)).exists());
    assert_eq!(run(&["list", "--json"]).json()["cached"], serde_json::json!([]));
    fails(&run(&["rm", MODEL]).ran(), &["o/r"]);
}

#[test]
fn a_pulled_model_runs_and_needs_the_hub_no_more() {
    let body = fs::read(bedtime()).unwrap();
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    server.repo(&[("m-Q8_0.gguf", &body)]);
    let arguments = ["run", "--model", MODEL, "--max-tokens", "2", "--temperature", "0", "--json"];
    let first = online(&server, home.path(), &arguments).json();
    assert_eq!(first["tokens"].as_array().unwrap().len(), 2);
    let offline = online(&server, home.path(), &arguments).env("HF_HUB_OFFLINE", "1").json();
    assert_eq!((&offline["tokens"], server.seen(LISTING).len()), (&first["tokens"], 1));
}

#[test]
fn safetensors_come_with_tokenizer_and_templates() {
    let folder = named_templates();
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let terse = "additional_chat_templates/terse.jinja";
    let names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", terse];
    let files: Vec<(&str, Vec<u8>)> = names.iter().map(|n| (*n, fs::read(folder.path().join(n)).unwrap())).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, body)| (*name, body.as_slice())).collect();
    server.repo(&files);
    let arguments = ["run", "--model", "hf:o/r", "--prompt", "Hi", "--chat-template", "terse", "-n", "1", "--json"];
    let value = online(&server, home.path(), &arguments).json();
    assert_eq!(value["prompt_tokens"].as_array().unwrap().len(), "Hi!".len());
}

#[test]
fn a_cut_connection_is_continued() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Cut(1_000_000), Trick::Cut(500_000)]);
    let pulled = online(&server, home.path(), &["pull", MODEL, "--json"]).json();
    assert_eq!(fs::read(pulled["path"].as_str().unwrap()).unwrap(), body);
    assert_eq!(server.ranges(FILE), ["", "bytes=1000000-", "bytes=1500000-"]);
}

/// Waits until a download by `child` has brought so many bytes to `partial`.
fn wait_for(child: &mut Child, partial: &Path, bytes: u64) {
    while fs::metadata(partial).map_or(0, |data| data.len()) < bytes {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_download_ends_with_130_and_keeps_its_part() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Hold(1_000_000)]);
    let mut child = online(&server, home.path(), &["pull", MODEL]).started();
    let partial = home.path().join("hub/models--o--r/blobs").join(format!("{}.incomplete", sha256(&body)));
    wait_for(&mut child, &partial, 1_000_000);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read(&partial).unwrap(), body[..1_000_000]);
}

/// The process is killed in the middle of a file; the next one goes on from what lies there.
#[test]
fn a_killed_download_is_continued_by_the_next_run() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Hold(2_000_000)]);
    let mut child = online(&server, home.path(), &["pull", MODEL]).started();
    let blobs = home.path().join("hub/models--o--r/blobs");
    let partial = blobs.join(format!("{}.incomplete", sha256(&body)));
    wait_for(&mut child, &partial, 2_000_000);
    child.kill().unwrap();
    child.wait().unwrap();

    let listed = online(&server, home.path(), &["list", "--json"]).json();
    let told = &listed["cached"][0];
    assert_eq!((&told["unfinished_bytes"], &told["files"]), (&2_000_000.into(), &serde_json::json!([])));
    let plain = online(&server, home.path(), &["list"]).ran().out;
    assert!(plain.contains("unfinished: 1.9 MiB; `yirage pull` goes on"), "{plain}");
    let ran = online(&server, home.path(), &["pull", MODEL]).ran();
    assert!(ran.code == 0 && ran.err.contains("1.9 MiB are here from before"), "{}", ran.err);
    assert_eq!(server.ranges(FILE), ["", "bytes=2000000-"]);
    assert_eq!(fs::read(blobs.join(sha256(&body))).unwrap(), body);
    assert!(!partial.exists());
}

#[test]
fn an_unfinished_download_can_be_removed() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let blobs = home.path().join("hub/models--o--r/blobs");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(blobs.join("etag.incomplete"), vec![0; 2048]).unwrap();
    let ran = online(&server, home.path(), &["rm", MODEL]).ran();
    assert_eq!((ran.code, ran.out.as_str()), (0, "hf:o/r:q8_0: 0 files removed, 2.0 KiB free again\n"), "{}", ran.err);
    assert!(!blobs.exists());
}

#[test]
fn wrong_bytes_are_an_error_and_not_kept() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Garble]);
    let ran = online(&server, home.path(), &["pull", MODEL]).ran();
    fails(&ran, &["m-Q8_0.gguf", &sha256(&body), "nothing was kept"]);
    assert_eq!(online(&server, home.path(), &["list", "--json"]).json()["cached"], serde_json::json!([]));
    assert_eq!(online(&server, home.path(), &["pull", MODEL]).ran().code, 0, "and the next try is a clean one");
}

#[test]
fn refusals_say_what_to_do() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let pull = |token: &str| online(&server, home.path(), &["pull", MODEL]).env("HF_TOKEN", token).ran();
    fails(&pull(""), &["404", LISTING, "spelling"]);
    server.repo(&[("m-Q8_0.gguf", b"GGUF")]);
    server.trick(LISTING, &[status(401, &[])]);
    let ran = pull("");
    fails(&ran, &["401", "set HF_TOKEN"]);
    assert!(!ran.err.contains("the one that was sent"), "{}", ran.err);
    server.trick(LISTING, &[status(403, &[])]);
    fails(&pull("hf_secret"), &["403", "the one that was sent may not"]);
    server.trick(FILE, &[status(429, &[("Retry-After", "3600")])]);
    fails(&pull(""), &["429", "wait 3600 s"]);
    let json = online(&server, home.path(), &["pull", "hf:o/absent", "--json"]).ran();
    let error: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &error["error"]["kind"]), (1, &"failure".into()));
}

#[test]
fn a_busy_server_is_asked_again() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    server.repo(&[("m-Q8_0.gguf", b"GGUF")]);
    server.trick(FILE, &[status(500, &[]), status(429, &[("Retry-After", "1")])]);
    let ran = online(&server, home.path(), &["pull", MODEL]).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("answer 500; trying again in 0.5 s"), "{}", ran.err);
    assert!(ran.err.contains("answer 429; trying again in 1 s"), "{}", ran.err);
}

#[test]
fn the_token_goes_to_the_endpoint_alone() {
    let (server, storage, home) = (FakeHub::start(), FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    let place = "/bucket/1?signed=yes";
    server.moved(FILE, &format!("{}{place}", storage.address), &body);
    storage.file(place, &body, "its own tag");
    storage.trick(place, &[Trick::Cut(1000), Trick::Garble]);
    fs::write(home.path().join("token"), "hf_secret_of_the_file\n").unwrap();
    let pull = |token: &str| online(&server, home.path(), &["pull", MODEL]).env("HF_TOKEN", token).ran();

    fails(&pull("hf_secret"), &["SHA-256", &sha256(&body)]);
    assert_eq!(pull("").code, 0, "the checksum is the one that the hub told, not the storage");
    let blob = home.path().join("hub/models--o--r/blobs").join(sha256(&body));
    assert_eq!(fs::read(blob).unwrap(), body);
    assert_eq!(storage.ranges(place), ["", "bytes=1000-", ""]);
    assert!(storage.seen(place).iter().all(|seen| !seen.headers.contains_key("authorization")));
    let tokens: Vec<String> = server.seen(LISTING).iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(tokens, ["Bearer hf_secret", "Bearer hf_secret_of_the_file"], "the variable, else the file");
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    server.repo(&[("m-Q8_0.gguf", b"GGUF")]);
    // A file where the folder should be: no user may write there, not even root.
    let cache = home.path().join("hub");
    fs::write(&cache, "in the way").unwrap();
    fails(&online(&server, home.path(), &["pull", MODEL]).ran(), &[cache.to_str().unwrap(), "create the folder"]);
}

/// `--verify` finds what a size does not tell; without it, nothing is read.
pub(crate) fn verify() {
    let (server, home) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = bytes();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    let pull = |more: &[&str]| online(&server, home.path(), &[&["pull", MODEL], more].concat()).ran();
    assert_eq!(pull(&[]).code, 0);
    let blob = home.path().join("hub/models--o--r/blobs").join(sha256(&body));
    fs::write(&blob, vec![0; body.len()]).unwrap();
    assert_eq!((pull(&[]).code, fs::read(&blob).unwrap()), (0, vec![0; body.len()]));
    let ran = pull(&["--verify"]);
    assert!(ran.code == 0 && ran.err.contains("not the promised ones"), "{}", ran.err);
    assert_eq!(fs::read(&blob).unwrap(), body);
}

#[test]
fn without_a_home_the_cache_commands_say_so() {
    for arguments in [&["list"][..], &["rm", "hf:o/r"], &["pull", "hf:o/r"], &["run", "--model", "hf:o/r"]] {
        let run = ["HOME", "XDG_CACHE_HOME", "HF_HOME"].iter().fold(yirage(arguments), |run, name| run.env(name, ""));
        fails(&run.ran(), &["HOME is not set", "HF_HUB_CACHE"]);
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_cache_are_shown() {
    let home = tempfile::tempdir().unwrap();
    let repo = home.path().join("hub/models--o--r");
    fs::create_dir_all(repo.join("snapshots")).unwrap();
    std::os::unix::fs::symlink("/", repo.join("snapshots/abc")).unwrap();
    std::os::unix::fs::symlink("/", repo.join("blobs")).unwrap();
    let run = |arguments: &[&str]| yirage(arguments).env("HF_HOME", home.path().to_str().unwrap()).ran();
    let listed = run(&["list"]);
    assert!(listed.out.contains("links that lead out of the cache, left alone: 1\n"), "{}", listed.out);
}
