//! What the processor and the system around it are, as facts for people: caches, kinds of cores, NUMA nodes, huge pages,
//! the limits of control groups.
//!
//! Read from the system's files; a fact that they do not tell is left out, but what a block of a tiled region may take is
//! always told. Decides nothing: how many threads and how much
//! memory are taken is decided in [`crate::pool`] and [`crate::room`].

mod caches;
mod cores;
mod huge_pages;
mod identity;
mod limits;
mod numa;
mod processors;

pub(crate) use identity::ProcessorId;

use std::fs;
use std::path::Path;

/// Where the system shows its hardware.
const SYSTEM: &str = "/sys";

/// What reads a file below a root: tests have files of their own.
type SysfsReader<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Bytes of a second-level cache where the system does not tell: what the smallest of processors at any of our
/// instruction-set levels have.
const LEAST_SECOND_LEVEL: u64 = 256 << 10;

/// Bytes of the second-level cache that are one worker's.
pub(crate) fn second_level() -> u64 {
    let read = |path: &str| fs::read_to_string(Path::new(SYSTEM).join(path)).ok();
    caches::second_level(&read).unwrap_or(LEAST_SECOND_LEVEL)
}

/// Every fact that the system tells, as (name, value).
pub(crate) fn facts() -> Vec<(&'static str, String)> {
    let read = |path: &str| fs::read_to_string(Path::new(SYSTEM).join(path)).ok();
    let facts = [
        ("caches", caches::caches(&read)),
        ("cores", cores::cores(&read)),
        ("numa", numa::nodes(&read)),
        ("huge_pages", huge_pages::huge_pages(&read)),
        ("cgroup", limits::of_groups()),
        ("block_bytes", Some(second_level().to_string())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The first line of a file, without what surrounds it.
fn line(read: SysfsReader<'_>, path: &str) -> Option<String> {
    read(path).map(|text| text.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod files {
    use std::collections::HashMap;

    /// A reader of these files.
    pub(super) fn of(files: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let files: HashMap<String, String> = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        move |path: &str| files.get(path).cloned()
    }
}
