//! Downloads from a hub on the loopback interface, with everything that goes wrong on the way to a real one.

use crate::support::{FakeHub, Log, Trick, env, hub, sha256};
use std::fs;
use std::time::Duration;
use yirage_hub::{CacheVerification, Hub, HubError, ModelOrigin, ModelRef, NoProgress, ResolvedFormat};

const FILE: &str = "/o/r/resolve/c0ffee/m-Q8_0.gguf";

fn model() -> Vec<u8> {
    (0..3_000_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn repo() -> ModelRef {
    ModelRef::parse("hf:o/r:q8_0").unwrap()
}

fn status(status: u16, headers: &[(&str, &str)]) -> Trick {
    Trick::Status(status, headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn a_repository_becomes_the_hubs_own_layout() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body), ("m-Q4_0.gguf", b"no"), ("README.md", b"hello")]);
    let log = Log::default();
    let found = hub(&server.address, cache.path()).resolve(&repo(), &log).unwrap();
    assert_eq!((found.name.as_str(), found.kind, found.origin), ("o/r:q8_0", ResolvedFormat::Gguf, ModelOrigin::Hub));
    let folder = cache.path().join("models--o--r");
    assert_eq!(found.path, folder.join("snapshots/c0ffee/m-Q8_0.gguf"));
    assert_eq!(fs::read(&found.path).unwrap(), body);
    assert_eq!(fs::read_to_string(folder.join("refs/main")).unwrap(), "c0ffee");
    assert_eq!(fs::read(folder.join("blobs").join(sha256(&body))).unwrap(), body);
    #[cfg(unix)]
    assert_eq!(fs::read_link(&found.path).unwrap().to_str().unwrap(), format!("../../blobs/{}", sha256(&body)));
    assert_eq!(fs::read_dir(folder.join("blobs")).unwrap().count(), 1, "nothing unfinished, nothing unasked");
    assert_eq!(*log.0.lock().unwrap(), [format!("start m-Q8_0.gguf 0/{}", body.len()), "finish".into()]);

    let again = hub("http://127.0.0.1:1", cache.path()).resolve(&repo(), &NoProgress).unwrap();
    assert_eq!((again.path, again.origin), (found.path, ModelOrigin::Cache), "the second time needs no hub");
}

#[test]
fn a_cut_connection_goes_on_where_it_stopped() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Cut(1_000_000), Trick::Cut(500_000), Trick::Cut(0), Trick::Cut(0)]);
    let found = hub(&server.address, cache.path()).resolve(&repo(), &NoProgress).unwrap();
    assert_eq!(fs::read(found.path).unwrap(), body);
    assert_eq!(server.ranges(FILE), ["", "bytes=1000000-", "bytes=1500000-", "bytes=1500000-", "bytes=1500000-"]);
}

#[test]
fn giving_up_keeps_the_part_and_the_next_run_uses_it() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Cut(2_000_000), Trick::Cut(0), Trick::Cut(0), Trick::Cut(0)]);
    let hub = hub(&server.address, cache.path());
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Broken { done_bytes: 2_000_000, attempts: 3, .. }), "{error}");
    assert!(!cache.path().join("models--o--r/snapshots").exists(), "half a model is no model");
    let log = Log::default();
    hub.resolve(&repo(), &log).unwrap();
    assert_eq!(log.0.lock().unwrap()[0], format!("start m-Q8_0.gguf 2000000/{}", body.len()));
}

#[test]
fn a_server_without_ranges_starts_over() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Cut(700_000), Trick::IgnoreRange]);
    let found = hub(&server.address, cache.path()).resolve(&repo(), &NoProgress).unwrap();
    assert_eq!(fs::read(found.path).unwrap(), body);
}

#[test]
fn wrong_bytes_are_not_kept() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Garble]);
    let hub = hub(&server.address, cache.path());
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(&error, HubError::Checksum { promised, .. } if *promised == sha256(&body)), "{error}");
    assert_eq!(fs::read_dir(cache.path().join("models--o--r/blobs")).unwrap().count(), 0);
    assert_eq!(hub.resolve(&repo(), &NoProgress).unwrap().origin, ModelOrigin::Hub, "and the next try is a clean one");
}

#[test]
fn a_part_of_another_day_is_fetched_anew() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    let blobs = cache.path().join("models--o--r/blobs");
    fs::create_dir_all(&blobs).unwrap();
    for stale in [vec![7; 1000], vec![7; body.len()], vec![7; body.len() + 5]] {
        fs::write(blobs.join(format!("{}.incomplete", sha256(&body))), stale).unwrap();
        let found =
            hub(&server.address, cache.path()).pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap();
        assert_eq!(fs::read(found.path).unwrap(), body);
        fs::remove_dir_all(cache.path().join("models--o--r/snapshots")).unwrap();
        fs::remove_file(blobs.join(sha256(&body))).unwrap();
    }
}

#[test]
fn busy_servers_are_waited_for_and_believed() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    server.repo(&[("m-Q8_0.gguf", b"GGUF")]);
    server.trick(FILE, &[status(429, &[("Retry-After", "1")]), status(503, &[]), Trick::Cut(4)]);
    let log = Log::default();
    let hub = hub(&server.address, cache.path());
    hub.resolve(&repo(), &log).unwrap();
    let notes: Vec<String> = log.0.lock().unwrap().iter().filter(|line| line.starts_with("note")).cloned().collect();
    assert!(notes[0].contains("answer 429; trying again in 1 s"), "{notes:?}");
    assert!(notes[1].contains("answer 503; trying again in"), "{notes:?}");

    hub.remove(&ModelRef::parse("hf:o/r").unwrap()).unwrap();
    server.trick(FILE, &[status(429, &[("Retry-After", "3600")])]);
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Busy { status: 429, wait, .. } if wait.as_secs() == 3600), "{error}");
    server.trick(FILE, &[status(500, &[]), status(500, &[]), status(500, &[])]);
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Status { status: 500, attempts: 3, .. }), "{error}");
}

#[test]
fn refusals_are_final_and_say_what_to_do() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let hub = hub(&server.address, cache.path());
    let listing = "/api/models/o/r/revision/main";
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::NotFound { .. }), "{error}");
    server.trick(listing, &[status(401, &[])]);
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Refused { status: 401, token_sent: true, .. }), "{error}");
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    assert_eq!(server.seen(listing).len(), 2, "neither was tried again");
    server.file(listing, b"<html>a portal's login page</html>", "x");
    assert!(matches!(hub.resolve(&repo(), &NoProgress), Err(HubError::Protocol { .. })));
    server.file(listing, br#"{"sha":"../../x","siblings":[]}"#, "x");
    assert!(matches!(hub.resolve(&repo(), &NoProgress), Err(HubError::Protocol { .. })));
    server.file(listing, br#"{"sha":"c","siblings":[{"rfilename":"../../m-Q8_0.gguf"}]}"#, "x");
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::NoSuchQuant { .. }), "that file is not even seen: {error}");
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    let (server, storage, cache) = (FakeHub::start(), FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    storage.file("/blob/1?signed=yes", &body, "other");
    let to_storage = format!("{}/blob/1?signed=yes", storage.address);
    server.trick(FILE, &[status(302, &[("Location", &to_storage)])]);
    let found = hub(&server.address, cache.path()).resolve(&repo(), &NoProgress).unwrap();
    assert_eq!(fs::read(found.path).unwrap(), body);
    assert!(server.seen(FILE).iter().all(|seen| seen.headers["authorization"] == "Bearer hf_secret"));
    let seen = storage.seen("/blob/1?signed=yes");
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].headers.contains_key("authorization"));
}

#[test]
fn circles_and_traps_of_redirects_end() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    server.repo(&[("m-Q8_0.gguf", b"GGUF")]);
    let hub = hub(&server.address, cache.path());
    server.trick(FILE, &vec![status(302, &[("Location", FILE)]); 20]);
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err().to_string();
    assert!(error.contains("more than 10 redirects"), "{error}");
    server.trick(FILE, &[status(302, &[("Location", "file:///etc/passwd")])]);
    let error = hub.resolve(&repo(), &NoProgress).unwrap_err().to_string();
    assert!(error.contains("no web address"), "{error}");
}

#[test]
fn nobody_there_fails_at_once_and_offline_never_asks() {
    let cache = tempfile::tempdir().unwrap();
    let error = hub("http://127.0.0.1:1", cache.path()).resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(&error, HubError::Unreachable { host, .. } if host == "http://127.0.0.1:1"), "{error}");
    let error = hub("http://no-such-host.invalid", cache.path()).resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
    let server = FakeHub::start();
    let mut offline = env(&server.address, cache.path());
    offline.offline = true;
    let error = Hub::new(offline).resolve(&repo(), &NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Offline { .. }) && server.seen("/api/models/o/r/revision/main").is_empty());
}

#[test]
fn safetensors_come_with_what_belongs_to_them() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let files: [(&str, &[u8]); 5] = [
        ("config.json", b"{}"),
        ("tokenizer.json", b"{\"t\":1}"),
        ("model.safetensors", b"weights"),
        ("additional_chat_templates/rag.jinja", b"{{ x }}"),
        ("pytorch_model.bin", b"pickle"),
    ];
    server.repo(&files);
    let hub = hub(&server.address, cache.path());
    let found = hub.resolve(&ModelRef::parse("hf:o/r").unwrap(), &NoProgress).unwrap();
    assert_eq!(
        (found.kind, found.path.clone()),
        (ResolvedFormat::Safetensors, cache.path().join("models--o--r/snapshots/c0ffee"))
    );
    for (name, body) in &files[..4] {
        assert_eq!(fs::read(found.path.join(name)).unwrap(), *body, "{name}");
    }
    assert!(!found.path.join("pytorch_model.bin").exists());
    assert_eq!(hub.resolve(&ModelRef::parse("hf:o/r").unwrap(), &NoProgress).unwrap().origin, ModelOrigin::Cache);
}

#[test]
fn two_at_once_fetch_one_file_once() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    let hub = hub(&server.address, cache.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(
                    fs::read(hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap().path)
                        .unwrap()
                        .len(),
                    body.len()
                )
            });
        }
    });
    assert_eq!(server.seen(FILE).iter().filter(|seen| seen.method == "GET").count(), 1);
}

#[test]
fn a_blob_that_is_there_is_compared_when_asked_and_after_a_crash() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    let hub = hub(&server.address, cache.path());
    let path = hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap().path;
    let lock = cache.path().join(format!(".locks/models--o--r/{}.lock", sha256(&body)));
    assert_eq!(fs::metadata(&lock).unwrap().len(), 0, "it came to an end");
    let damage = || fs::write(fs::canonicalize(&path).unwrap(), vec![0; body.len()]).unwrap();

    damage();
    hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap();
    assert_ne!(fs::read(&path).unwrap(), body, "nobody asked, and nothing was interrupted");
    let log = Log::default();
    hub.pull(&repo(), CacheVerification::Always, &log).unwrap();
    assert_eq!(fs::read(&path).unwrap(), body);
    assert!(log.0.lock().unwrap().iter().any(|line| line.contains("not the promised ones")));

    damage();
    fs::write(&lock, "a machine lost its power").unwrap();
    hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap();
    assert_eq!(fs::read(&path).unwrap(), body);
    assert_eq!(fs::metadata(&lock).unwrap().len(), 0);
    let before = server.ranges(FILE).len();
    hub.pull(&repo(), CacheVerification::Always, &NoProgress).unwrap();
    assert_eq!((before, server.ranges(FILE).len()), (3, 3), "right bytes are not fetched again");
}

#[test]
fn a_download_that_failed_leaves_its_mark_until_one_succeeds() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Cut(1000), Trick::Cut(0), Trick::Cut(0), Trick::Cut(0)]);
    let hub = hub(&server.address, cache.path());
    hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap_err();
    let lock = cache.path().join(format!(".locks/models--o--r/{}.lock", sha256(&body)));
    assert!(fs::metadata(&lock).unwrap().len() > 0);
    hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap();
    assert_eq!(fs::metadata(&lock).unwrap().len(), 0);
}

#[test]
fn a_download_that_drips_is_given_up_and_goes_on_later() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let body = model();
    server.repo(&[("m-Q8_0.gguf", &body)]);
    server.trick(FILE, &[Trick::Drip(100, Duration::from_millis(20))]);
    let mut slow = env(&server.address, cache.path());
    slow.patience.least_speed = 1 << 20;
    slow.patience.window = Duration::from_millis(300);
    let error = Hub::new(slow.clone()).pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap_err();
    let HubError::TooSlow { received_bytes, speed, least, .. } = error else { panic!("{error}") };
    assert!(least == 1 << 20 && speed < least && received_bytes > 0 && received_bytes < body.len() as u64);
    assert!(error.to_string().contains("less than the least of 1048576"), "{error}");
    slow.patience.window = Duration::from_secs(3600);
    let found = Hub::new(slow).pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap();
    assert_eq!(fs::read(found.path).unwrap(), body);
    assert_eq!(server.ranges(FILE)[1], format!("bytes={received_bytes}-"));
}

#[test]
fn answers_and_files_have_a_deadline_however_they_trickle() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    server.repo(&[("m-Q8_0.gguf", &model())]);
    let mut brief = env(&server.address, cache.path());
    brief.patience.deadline = Duration::from_millis(600);
    brief.patience.least_speed = u64::MAX;
    brief.patience.window = Duration::from_secs(3600);
    let hub = Hub::new(brief);
    server.trick("/api/models/o/r/revision/main", &[Trick::Drip(1, Duration::from_millis(10))]);
    let error = hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap_err();
    assert!(matches!(&error, HubError::TooLate { url, .. } if url.ends_with("/revision/main")), "{error}");
    // Each connection brings a byte, so that each one is progress.
    server.trick(FILE, &vec![Trick::Cut(1); 100_000]);
    let error = hub.pull(&repo(), CacheVerification::AfterCrash, &NoProgress).unwrap_err();
    assert!(matches!(&error, HubError::TooLate { url, received_bytes: 1.., .. } if url.ends_with(FILE)), "{error}");
}

#[test]
fn files_with_unsafe_names_are_told() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let listing = "/api/models/o/r/revision/main";
    let names = r#"{"rfilename":"../../m-Q8_0.gguf"},{"rfilename":"\u001b[2J.gguf"}"#;
    server.file(listing, format!(r#"{{"sha":"c0ffee","siblings":[{names}]}}"#).as_bytes(), "x");
    let hub = hub(&server.address, cache.path());
    let error = hub.resolve(&ModelRef::parse("hf:o/r").unwrap(), &NoProgress).unwrap_err().to_string();
    assert!(error.contains("holds 0 files") && error.contains("2 more were left out"), "{error}");
    assert!(error.contains("`../../m-Q8_0.gguf`, `\\u{1b}[2J.gguf`") && !error.contains('\x1b'), "{error:?}");

    server.repo(&[("m-Q8_0.gguf", b"GGUF")]);
    let siblings = format!(r#"{{"sha":"c0ffee","siblings":[{{"rfilename":"m-Q8_0.gguf"}},{names}]}}"#);
    server.file(listing, siblings.as_bytes(), "x");
    let log = Log::default();
    hub.resolve(&repo(), &log).unwrap();
    assert!(log.0.lock().unwrap().iter().any(|line| line.contains("2 more were left out")));
}
