//! `yirage cache`: the repacked weights on disk.

use crate::console::{Console, bytes};
use crate::failure::Failure;
use crate::options::Layers;
use crate::settings::weight_cache_folder;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_packed::{Listed, PackedError, Store, verify};

/// Runs the command; `action` is one of those that the command line allows.
///
/// # Errors
/// [`Failure::Packed`] for a folder that cannot be read or cleared; [`Failure::Other`] when entries were found damaged.
pub(crate) fn run(layers: &Layers, console: &Console, action: &str) -> Result<(), Failure> {
    // Nothing is written here, so no limit matters.
    let store = Store::new(weight_cache_folder(layers)?, u64::MAX);
    match action {
        "clear" => clear(&store, console),
        "verify" => verify_all(&store, console),
        _ => list(&store, console),
    }
}

fn list(store: &Store, console: &Console) -> Result<(), Failure> {
    let (entries, unfinished) = (store.list()?, store.unfinished_bytes()?);
    if console.json {
        let entries: Vec<Value> = entries.iter().map(as_json).collect();
        let folder = store.folder();
        return console.value(&json!({"folder": folder, "unfinished_bytes": unfinished, "entries": entries}));
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
    Ok(())
}

fn as_json(entry: &Listed) -> Value {
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

fn clear(store: &Store, console: &Console) -> Result<(), Failure> {
    let removed = store.clear()?;
    if console.json {
        return console.value(&json!({"folder": store.folder(), "files": removed.files, "bytes": removed.bytes}));
    }
    console.line(&format!("{} files removed, {} free again", removed.files, bytes(removed.bytes)))
}

/// Compares every byte with its checksum. What is damaged goes: it would be refused or, worse, used at the next start.
fn verify_all(store: &Store, console: &Console) -> Result<(), Failure> {
    let (mut results, mut damaged) = (Vec::new(), 0);
    let entries = store.list()?;
    for entry in &entries {
        let checked = verify(&entry.path);
        if let Err(why) = &checked
            && is_damage(why)
        {
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
        console.value(&json!({"folder": store.folder(), "entries": results, "removed": damaged}))?;
    }
    match damaged {
        0 => Ok(()),
        n => Err(Failure::Other(format!("{n} of {} entries were damaged and have been removed", entries.len()))),
    }
}

/// Whether the bytes are at fault, rather than the way to them or the version of this program.
fn is_damage(error: &PackedError) -> bool {
    matches!(error, PackedError::Damaged { .. } | PackedError::Header { .. })
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
