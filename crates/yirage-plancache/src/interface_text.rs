//! What a graph takes and gives, as lines of a plan file.

use crate::error::PlanFileError;
use crate::interface::Interface;
use std::fmt::Write;
use yirage_ir::Type;
use yirage_ir::hash::fnv128;
use yirage_ir::text::{OUTDATED, outdated_word, parse_type};

/// The hash of names and types.
pub(crate) fn interface_hash(interface: &Interface) -> u128 {
    fnv128(print_interface(interface).as_bytes())
}

/// The lines of an interface.
pub(crate) fn print_interface(interface: &Interface) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "graph {}", interface.graph);
    let kinds = [&interface.step_inputs, &interface.weights, &interface.kv_caches, &interface.outputs];
    for (kind, values) in KINDS.into_iter().zip(kinds) {
        for (name, ty) in values {
            let _ = writeln!(out, "{kind} %{name}: {ty}");
        }
    }
    out
}

/// The first words of lines, in the order in which they come.
const KINDS: [&str; 4] = ["input", "weight", "kv_cache", "output"];

/// Reads them.
pub(crate) fn parse_interface(text: &str) -> Result<Interface, PlanFileError> {
    let wrong = |at: usize, what: String| PlanFileError::Line { section: "interface", line: at + 1, what };
    let mut lines = text.lines().enumerate();
    let name = lines.next().and_then(|(_, line)| line.strip_prefix("graph "));
    let graph = name.ok_or_else(|| wrong(0, "`graph NAME` wanted".into()))?.to_owned();
    let mut values: [Vec<(String, Type)>; 4] = Default::default();
    let mut last = 0;
    for (at, line) in lines {
        let unread = || wrong(at, format!("`KIND %NAME: TYPE` wanted, `{line:.60}` found"));
        let (kind, rest) = line.split_once(" %").ok_or_else(unread)?;
        let outdated = || outdated_word(&OUTDATED, kind).map_or_else(unread, |why| wrong(at, why));
        let place = KINDS.iter().position(|known| *known == kind).ok_or_else(outdated)?;
        if place < last {
            return Err(wrong(at, format!("`{kind}` stands behind `{}`", KINDS[last])));
        }
        let (name, ty) = rest.split_once(": ").ok_or_else(unread)?;
        let ty = parse_type(ty).map_err(|e| wrong(at, format!("the type of `{name:.60}`: {}", e.what)))?;
        ty.check().map_err(|e| wrong(at, format!("the type of `{name:.60}`: {e}")))?;
        values[place].push((name.to_owned(), ty));
        last = place;
    }
    let [step_inputs, weights, kv_caches, outputs] = values;
    Ok(Interface { graph, step_inputs, weights, kv_caches, outputs })
}
