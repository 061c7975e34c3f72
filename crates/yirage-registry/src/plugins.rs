//! Backends of other people's: libraries that the user names, and none otherwise.

use crate::entry::{Provider, RegistryEntry};
use std::path::Path;
use std::sync::Arc;
use yirage_hal::{Backend, Unavailable};
use yirage_plugin::PluginBackend;
use yirage_probe::ProbeEnvironment;

/// The variable that names libraries: `NAME=PATH`, more of them separated as in `PATH`.
pub const PLUGINS_VARIABLE: &str = "YIRAGE_PLUGINS";
/// What an entry is listed as that has no name of its own.
const NAMELESS: &str = "plug-in";
const REMEDY: &str = "write NAME=/path/to/library.so in YIRAGE_PLUGINS, or unset it";

/// Puts what the variable names into a list, each in the place of its name where that has no backend, and before the backends of
/// tests otherwise. Nothing is loaded. What cannot be put there is listed with the reason.
pub(crate) fn add(list: &mut Vec<RegistryEntry>, surroundings: &ProbeEnvironment) {
    let Some(value) = surroundings.variable(PLUGINS_VARIABLE).filter(|value| !value.is_empty()) else { return };
    for named in std::env::split_paths(value) {
        let named = named.to_string_lossy().into_owned();
        match parsed(&named, list) {
            Ok(backend) => put(list, backend.name(), Provider::ByName(Arc::new(backend))),
            Err(why) => {
                let why = Unavailable { backend: NAMELESS, why, remedy: REMEDY.into(), present: true };
                list.push(RegistryEntry { name: NAMELESS, aliases: &[], provider: Provider::Refused(why) });
            }
        }
    }
}

/// The backend that an entry names, where the name is free.
fn parsed(named: &str, list: &[RegistryEntry]) -> Result<PluginBackend, String> {
    let (name, path) = named.split_once('=').ok_or_else(|| format!("expected NAME=PATH, got `{named}`"))?;
    if let Some(taken) = list.iter().find(|listed| listed.is(name) && !(listed.name == name && listed.has_no_backend()))
    {
        return Err(match taken.has_no_backend() {
            true => format!("`{name}` is another name of `{}`: write {}={path}", taken.name, taken.name),
            false => format!("`{name}` is a backend of this build: have the library call itself by another name"),
        });
    }
    PluginBackend::new(name, Path::new(path)).map_err(|error| error.to_string())
}

fn put(list: &mut Vec<RegistryEntry>, name: &'static str, provider: Provider) {
    match list.iter_mut().find(|listed| listed.name == name) {
        Some(listed) => listed.provider = provider,
        None => {
            let before = list.iter().position(|listed| matches!(listed.provider, Provider::OfTests(_)));
            list.insert(before.unwrap_or(list.len()), RegistryEntry { name, aliases: &[], provider });
        }
    }
}
