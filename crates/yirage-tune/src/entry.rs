//! A kept result as text, and what is checked before it is believed.
//!
//! A checksum finds damage, the key foreign entries, and the certificate graphs that it is not of. It is no defence against
//! someone who writes into the folder on purpose.

use crate::comparison::{PairedComparison, Times};
use crate::key::TuneKey;
use crate::limits::ENTRY_BYTES;
use crate::outcome::{CandidateResult, CandidateVerdict, SearchOutcome, SearchResultOrigin};
use std::collections::HashSet;
use yirage_ir::{Graph, ValueId, text, verify};
use yirage_packed::sealed::{open, seal};
use yirage_search::equal::Certificate;

/// The first line of an entry. Another number is another form of text.
const HEAD: &str = "yirage-tune 4";

/// The sections of an entry, in order.
const SECTIONS: [&str; 6] = ["key", "graph", "certificate", "rules", "measured", "notes"];

/// The text of a result.
pub(crate) fn print(key: &TuneKey, outcome: &SearchOutcome) -> String {
    let (graph, certificate) = match &outcome.certificate {
        Some(certificate) => (text::print(&outcome.graph), certificate.to_string()),
        None => (String::new(), String::new()),
    };
    let lines = |list: &[String]| list.iter().map(|line| format!("{}\n", plain(line))).collect::<String>();
    let measured = outcome.measured.iter().map(line).collect::<String>();
    let bodies = [key.text().to_owned(), graph, certificate, lines(&outcome.rules), measured, lines(&outcome.notes)];
    let sections: Vec<_> = SECTIONS.into_iter().zip(bodies.iter().map(String::as_str)).collect();
    seal(HEAD, &sections)
}

/// A text without what would end a line or a field.
fn plain(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

fn line(of: &CandidateResult) -> String {
    let (kind, rest) = match &of.verdict {
        CandidateVerdict::Unproved(why) => ("unproved", plain(why)),
        CandidateVerdict::NotRun(why) => ("not run", plain(why)),
        CandidateVerdict::Timed { first, second } => {
            let looks = std::iter::once(first).chain(second).map(numbers).collect::<Vec<_>>();
            ("timed", looks.join(" "))
        }
    };
    format!("{kind}\t{:?}\t{rest}\t{}\n", of.expected_ns, of.rules.join("; "))
}

/// The numbers of a look, in the order in which [`read_look`] takes them.
fn numbers(look: &PairedComparison) -> String {
    let PairedComparison { pairs, wins, disturbed, ratio, input, candidate } = look;
    let (times, own) = ((input.median_ns, input.lowest_ns), (candidate.median_ns, candidate.lowest_ns));
    format!("{pairs} {wins} {disturbed} {ratio:?} {:?} {:?} {:?} {:?}", times.0, times.1, own.0, own.1)
}

/// How many numbers a look has.
const NUMBERS: usize = 8;

/// The result that a text holds for a graph, if it is whole and this graph's.
pub(crate) fn parse(
    entry: &str,
    key: &TuneKey,
    graph: &Graph,
    told: SearchResultOrigin,
) -> Result<SearchOutcome, String> {
    if entry.len() as u64 > ENTRY_BYTES {
        return Err(format!("{} bytes, {ENTRY_BYTES} are the most", entry.len()));
    }
    let [found, candidate, certificate, rules, measured, notes] =
        open(HEAD, SECTIONS, entry).map_err(|why| why.to_string())?;
    if found != key.text() {
        return Err("it is of another graph, device or search".into());
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let measured = measured.lines().map(read_line).collect::<Result<Vec<_>, String>>()?;
    let (rules, notes) = (lines(rules), lines(notes));
    if candidate.is_empty() && certificate.is_empty() {
        return Ok(SearchOutcome { graph: graph.clone(), certificate: None, rules, measured, notes, origin: told });
    }
    let candidate = text::parse(candidate).map_err(|e| format!("its graph: {e}"))?;
    verify(&candidate).map_err(|e| format!("its graph: {e}"))?;
    let candidate = named_like(candidate, graph)?;
    let certificate: Certificate = certificate.parse().map_err(|e| format!("{e}"))?;
    certificate.check(graph, &candidate).map_err(|e| e.to_string())?;
    Ok(SearchOutcome { graph: candidate, certificate: Some(certificate), rules, measured, notes, origin: told })
}

fn read_line(line: &str) -> Result<CandidateResult, String> {
    let wrong = || format!("a line of its measurements is none: `{line}`");
    let [kind, expected, rest, rules] = line.split('\t').collect::<Vec<_>>()[..] else { return Err(wrong()) };
    let verdict = match kind {
        "unproved" => CandidateVerdict::Unproved(rest.to_owned()),
        "not run" => CandidateVerdict::NotRun(rest.to_owned()),
        "timed" => {
            let words: Vec<&str> = rest.split(' ').collect();
            let looks = words.chunks(NUMBERS).map(read_look).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
            match looks[..] {
                [first] => CandidateVerdict::Timed { first, second: None },
                [first, second] => CandidateVerdict::Timed { first, second: Some(second) },
                _ => return Err(wrong()),
            }
        }
        _ => return Err(wrong()),
    };
    let rules = rules.split("; ").filter(|rule| !rule.is_empty()).map(str::to_owned).collect();
    Ok(CandidateResult { rules, expected_ns: number(expected).ok_or_else(wrong)?, verdict })
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|n| !n.is_nan())
}

fn read_look(words: &[&str]) -> Option<PairedComparison> {
    let [pairs, wins, disturbed, ratio, times @ ..] = words else { return None };
    let [input, lowest, candidate, own_lowest] = times else { return None };
    let count = |text: &str| text.parse::<u32>().ok();
    let times = |median: &str, lowest: &str| Some(Times { median_ns: number(median)?, lowest_ns: number(lowest)? });
    Some(PairedComparison {
        pairs: count(pairs)?,
        wins: count(wins)?,
        disturbed: count(disturbed)?,
        ratio: number(ratio)?,
        input: times(input, lowest)?,
        candidate: times(candidate, own_lowest)?,
    })
}

/// A kept graph with the names of the inputs and outputs of the graph that it is to stand for.
fn named_like(mut kept: Graph, graph: &Graph) -> Result<Graph, String> {
    let types = |g: &Graph, ids: &[ValueId]| {
        ids.iter()
            .map(|&id| (g.ty(id).clone(), matches!(g.value(id).source, yirage_ir::ValueSource::Node { .. })))
            .collect()
    };
    let ends = |g: &Graph| -> (Vec<_>, Vec<_>) { (types(g, &g.inputs), types(g, &g.outputs)) };
    let sources = |g: &Graph| g.inputs.iter().map(|&id| g.value(id).source).collect::<Vec<_>>();
    if ends(&kept) != ends(graph) || sources(&kept) != sources(graph) {
        return Err("its graph has other inputs or outputs".into());
    }
    let (old, new): (Vec<ValueId>, Vec<ValueId>) =
        ([&kept.inputs[..], &kept.outputs].concat(), [&graph.inputs[..], &graph.outputs].concat());
    let names: HashSet<&str> = new.iter().map(|&id| graph.value(id).name.as_str()).collect();
    let mut taken: HashSet<String> = names.iter().map(|&n| n.to_owned()).collect();
    taken.extend(kept.values.iter().map(|v| v.name.clone()));
    for (at, value) in kept.values.iter_mut().enumerate() {
        let place = old.iter().position(|id| id.index() == at);
        if let Some(place) = place {
            value.name = graph.value(new[place]).name.clone();
        } else if names.contains(value.name.as_str()) {
            let mut next = at;
            while !taken.insert(format!("t{next}")) {
                next += 1;
            }
            value.name = format!("t{next}");
        }
    }
    kept.name.clone_from(&graph.name);
    verify(&kept).map_err(|e| format!("its graph: {e}"))?;
    Ok(kept)
}
