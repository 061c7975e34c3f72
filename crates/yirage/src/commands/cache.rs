//! `yirage cache`: the repacked weights on disk, and what devices have compiled.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::weight_cache_folder;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_engine::plan_folder;
use yirage_packed::{Contents, PackedError, PackedStore, RemovedFiles, StoredEntry, TextStore, texts_folder, verify};

/// Files of others that are named one by one.
const SHOWN: usize = 20;

/// Endings of what devices have compiled, beside the plans: kernels of run-time compilers, and pipelines of graphics drivers.
const COMPILED: [&str; 2] = [".code", ".pipelines"];

/// Runs the command; `action` is one of those that the command line allows.
///
/// # Errors
/// [`CliFailure::Packed`] for a folder that cannot be read or cleared; [`CliFailure::Other`] when entries were found damaged.
pub(crate) fn run(layers: &Layers, console: &Console, action: &str) -> Result<(), CliFailure> {
    // Nothing is written here, so no limit matters.
    let store = PackedStore::new(weight_cache_folder(layers)?, u64::MAX);
    match action {
        "clear" => clear(&store, console),
        "verify" => verify_all(&store, console),
        _ => list(&store, console),
    }
}

/// Whether a file is named as the stores name what devices have compiled: 32 digits, and an ending.
fn is_compiled(name: &str) -> bool {
    let id = COMPILED.iter().find_map(|ending| name.strip_suffix(ending));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// What devices have compiled: files and their bytes.
fn compiled(store: &PackedStore) -> RemovedFiles {
    let files = std::fs::read_dir(texts_folder(store.folder())).into_iter().flatten().flatten();
    let ours = files.filter(|file| file.file_name().to_str().is_some_and(is_compiled));
    ours.fold(RemovedFiles::default(), |all, file| RemovedFiles {
        files: all.files + 1,
        bytes: all.bytes + file.metadata().map_or(0, |about| about.len()),
    })
}

fn list(store: &PackedStore, console: &Console) -> Result<(), CliFailure> {
    let compiled = compiled(store);
    let Contents { entries, unfinished_bytes: unfinished, foreign } = store.list()?;
    if console.json {
        let entries: Vec<Value> = entries.iter().map(as_json).collect();
        let (folder, foreign) = (store.folder(), as_texts(&foreign));
        return console
            .value(&json!({"folder": folder, "unfinished_bytes": unfinished, "entries": entries, "foreign": foreign,
                "compiled_kernels": {"files": compiled.files, "bytes": compiled.bytes}}));
    }
    console.line(&format!("repacked weights ({}):", store.folder().display()))?;
    for entry in &entries {
        console.line(&format!("  {}  {}  used {}", entry.key, bytes(entry.bytes), ago(entry.used)))?;
        match &entry.header {
            Ok(header) => {
                for file in &header.source {
                    let state = if file.is_unchanged() { "" } else { "  (gone or changed since: of no use)" };
                    console.line(&format!("    of {}{state}", file.path))?;
                }
            }
            Err(why) => console.line(&format!("    of no use: {why}"))?,
        }
    }
    if unfinished > 0 {
        console.line(&format!("  unfinished: {}", bytes(unfinished)))?;
    }
    if entries.is_empty() {
        console.line("  nothing")?;
    }
    if compiled.files > 0 {
        console.line(&format!("compiled kernels: {} files, {}", compiled.files, bytes(compiled.bytes)))?;
    }
    say_foreign(&foreign, console);
    Ok(())
}

/// Paths as JSON has them, which knows no bytes that are not text.
fn as_texts(paths: &[PathBuf]) -> Vec<Cow<'_, str>> {
    paths.iter().map(|path| path.to_string_lossy()).collect()
}

/// Says what in the folder is left alone since it is nobody's entry.
fn say_foreign(foreign: &[PathBuf], console: &Console) {
    for path in foreign.iter().take(SHOWN) {
        // Names of others may hold anything.
        console.note(&format!("not written by yirage, left alone: {path:?}"));
    }
    if foreign.len() > SHOWN {
        console.note(&format!("and {} others", foreign.len() - SHOWN));
    }
}

fn as_json(entry: &StoredEntry) -> Value {
    let used = entry.used.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let mut value = json!({"key": entry.key.to_string(), "path": entry.path, "bytes": entry.bytes, "used": used});
    match &entry.header {
        Ok(header) => {
            let file = |f: &yirage_packed::SourceFile| json!({"path": f.path, "unchanged": f.is_unchanged()});
            value["source"] = header.source.iter().map(file).collect();
            value["weights"] = header.images.len().into();
            value["device"] = header.device.as_str().into();
        }
        Err(why) => value["error"] = why.to_string().into(),
    }
    value
}

fn clear(store: &PackedStore, console: &Console) -> Result<(), CliFailure> {
    let RemovedFiles { files, bytes: freed } = store.clear()?;
    let folder = plan_folder(store.folder());
    let plans = folder.clear().map_err(|source| CliFailure::Plan { path: folder.path().to_path_buf(), source })?;
    let (mut files, mut freed) = (files + plans.files, freed + plans.bytes);
    for ending in COMPILED {
        let kernels = TextStore::new(texts_folder(store.folder()), ending, 0, 0);
        let removed = kernels.clear().map_err(|why| CliFailure::Other(why.to_string()))?;
        (files, freed) = (files + removed.files, freed + removed.bytes);
    }
    let foreign = store.list()?.foreign;
    if console.json {
        let folder = store.folder();
        return console
            .value(&json!({"folder": folder, "files": files, "bytes": freed, "foreign": as_texts(&foreign)}));
    }
    console.line(&format!("{files} files removed, {} free again", bytes(freed)))?;
    say_foreign(&foreign, console);
    Ok(())
}

/// Compares every byte with its checksum. What is damaged goes: it would be refused at the next start.
fn verify_all(store: &PackedStore, console: &Console) -> Result<(), CliFailure> {
    let (mut results, mut damaged) = (Vec::new(), 0);
    let Contents { entries, foreign, .. } = store.list()?;
    for entry in &entries {
        let checked = verify(&entry.path);
        if checked.as_ref().is_err_and(PackedError::is_damage) {
            store.remove(entry.key)?;
            damaged += 1;
        }
        if console.json {
            results.push(match checked {
                Ok(n) => json!({"key": entry.key.to_string(), "ok": true, "bytes": n}),
                Err(e) => json!({"key": entry.key.to_string(), "ok": false, "error": e.to_string()}),
            });
        } else {
            console.line(&match checked {
                Ok(n) => format!("{}  {} as they were written", entry.key, bytes(n)),
                Err(e) => format!("{}  {e}", entry.key),
            })?;
        }
    }
    if console.json {
        let (folder, foreign) = (store.folder(), as_texts(&foreign));
        console.value(&json!({"folder": folder, "entries": results, "removed": damaged, "foreign": foreign}))?;
    } else {
        say_foreign(&foreign, console);
    }
    match damaged {
        0 => Ok(()),
        n => Err(CliFailure::Other(format!("{n} of {} entries were damaged and have been removed", entries.len()))),
    }
}

/// How long ago, in the unit that fits.
fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(time).map_or(0, |d| d.as_secs());
    let (n, unit) = match seconds {
        0..120 => return "just now".into(),
        120..7200 => (seconds / 60, "minutes"),
        7200..172_800 => (seconds / 3600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{n} {unit} ago")
}

#[cfg(test)]
mod tests {
    use super::ago;
    use std::time::{Duration, SystemTime};

    #[test]
    fn times_have_a_fitting_unit() {
        let before = |s| ago(SystemTime::now() - Duration::from_secs(s));
        assert_eq!([before(5), before(600), before(10_800)], ["just now", "10 minutes ago", "3 hours ago"]);
        assert_eq!(before(5 * 86_400 + 60), "5 days ago");
        assert_eq!(ago(SystemTime::now() + Duration::from_secs(60)), "just now");
    }
}
