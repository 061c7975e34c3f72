//! `yirage list`: the models in the cache, and those the catalogue knows by name.

use crate::console::{Console, bytes};
use crate::download::hub;
use crate::failure::CliFailure;
use crate::options::Layers;
use serde_json::{Value, json};
use yirage_hub::{CATALOGUE, CachedModel, CatalogueEntry, Shipped};

/// Runs the command. Opens no connection.
///
/// # Errors
/// [`CliFailure::Closed`]; [`CliFailure::Hub`] where there is no place for a cache.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let hub = hub(layers);
    let cached = hub.list()?;
    if console.json {
        let catalogue: Vec<Value> = CATALOGUE.iter().map(entry).collect();
        let cached: Vec<Value> = cached.iter().map(model).collect();
        let shipped: Vec<Value> = hub.shipped().iter().map(carried).collect();
        let value = json!({"cache": hub.env().cache, "cached": cached, "catalogue": catalogue, "shipped": shipped});
        return console.value(&value);
    }
    console.line(&format!("in the cache ({}):", hub.env().cache.display()))?;
    for model in &cached {
        console.line(&format!("  hf:{}  {}", model.repo, bytes(model.bytes)))?;
        for file in &model.files {
            console.line(&format!("    {}  {}", file.name, bytes(file.bytes)))?;
        }
        if model.unfinished_bytes > 0 {
            console.line(&format!("    unfinished: {}; `yirage pull` goes on", bytes(model.unfinished_bytes)))?;
        }
        if model.links_out > 0 {
            console.line(&format!("    links that lead out of the cache, left alone: {}", model.links_out))?;
        }
    }
    if cached.is_empty() {
        console.line("  nothing")?;
    }
    console.line("in the catalogue:")?;
    for e in CATALOGUE {
        console.line(&format!("  {}  {}  {} ({})", e.name, bytes(e.bytes), e.summary, e.licence))?;
    }
    for s in hub.shipped() {
        console.line(&format!("  {}  {}  {} ({})", s.name, bytes(s.bytes.len() as u64), s.summary, s.licence))?;
    }
    Ok(())
}

fn model(m: &CachedModel) -> Value {
    let file = |f: &yirage_hub::CachedFile| json!({"name": f.name, "path": f.path, "bytes": f.bytes});
    let files: Vec<Value> = m.files.iter().map(file).collect();
    json!({
        "model": format!("hf:{}", m.repo),
        "bytes": m.bytes,
        "unfinished_bytes": m.unfinished_bytes,
        "links_out": m.links_out,
        "files": files,
    })
}

fn carried(s: &Shipped) -> Value {
    json!({"model": s.name, "summary": s.summary, "licence": s.licence, "bytes": s.bytes.len()})
}

fn entry(e: &CatalogueEntry) -> Value {
    json!({"model": e.name, "summary": e.summary, "chats": e.chats, "licence": e.licence, "bytes": e.bytes})
}
