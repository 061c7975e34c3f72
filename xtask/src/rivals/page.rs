//! The table, and the page around it: people write the page, this writes what stands between two comments in it.

use super::results::{RivalResults, Runs, less_is_better, median};
use std::fmt::Write;

const BEGIN: &str = "<!-- figures: written by cargo xtask bench-rivals -->";
const END: &str = "<!-- /figures -->";

/// `page` with new figures in the place of the old; a page without one gets it at its end.
pub(super) fn with_results_table(page: &str, figures: &str) -> String {
    let block = format!("{BEGIN}\n{figures}{END}");
    match (page.find(BEGIN), page.find(END)) {
        (Some(begin), Some(end)) if begin < end => format!("{}{block}{}", &page[..begin], &page[end + END.len()..]),
        _ if page.trim().is_empty() => format!("# CPU benchmarks\n\n{block}\n"),
        _ => format!("{}\n\n{block}\n", page.trim_end()),
    }
}

/// What was measured on what, and the table.
pub(super) fn results_table(results: &RivalResults) -> String {
    let mut out = String::new();
    let m = &results.machine;
    let memory: Vec<f64> = results.probes.iter().map(|p| p.memory).collect();
    let (low, high) = memory.iter().fold((f64::INFINITY, 0f64), |(l, h), &v| (l.min(v), h.max(v)));
    let _ = writeln!(
        out,
        "{}, {}, {} threads. {} rounds; medians (lowest to highest). Memory read before and after each round: {:.1} GB/s \
         ({low:.1} to {high:.1}).\n",
        m.cpu,
        m.arch,
        m.threads,
        results.rounds,
        median(&memory),
    );
    for (name, version) in &results.engines {
        let version = if version.is_empty() { "does not tell its version" } else { version };
        let _ = writeln!(out, "- {name}: {version}");
    }
    out.push_str("\n![Speed of every engine, as a multiple of the best rival's](cpu.svg)\n\n");
    table(results, &mut out);
    out
}

fn table(results: &RivalResults, out: &mut String) {
    let names: Vec<&str> = results.engines.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(out, "| model | test | {} | of the limit | yirage / best |", names.join(" | "));
    let _ = writeln!(out, "|---|---|{}---|---|", "---|".repeat(names.len()));
    for model in &results.models {
        for test in results.tests(model) {
            let runs = |name: &str| results.of(model, test, name);
            let cells: Vec<String> = names.iter().map(|name| runs(name).map_or("-".into(), cell)).collect();
            let share = names.first().and_then(|ours| runs(ours)?.share());
            let share = share.map_or("-".into(), |s| format!("{:.0} %", s * 100.0));
            let ratio = results.ratio(model, test).map_or("-".into(), |r| format!("{r:.2}"));
            let _ = writeln!(out, "| {model} | {} | {} | {share} | {ratio} |", named(test, results), cells.join(" | "));
        }
    }
}

/// A test with its unit.
fn named(test: &str, results: &RivalResults) -> String {
    let unit = match test {
        "start" => "s",
        "memory" => "MiB",
        _ => "tokens/s",
    };
    match test {
        "prefill" => format!("prefill of {}, {unit}", results.prompt),
        "decode" => format!("decode of {}, {unit}", results.generate),
        test if less_is_better(test) => format!("{test}, {unit}"),
        test => match test.strip_prefix("batch ") {
            Some("1") => format!("decode of 1 sequence behind 128, {unit}"),
            Some(count) => format!("decode of {count} sequences behind 128 each, {unit}"),
            None => format!("{test}, {unit}"),
        },
    }
}

fn cell(runs: &Runs) -> String {
    let (low, high) = runs.range();
    let digits = if low >= 100.0 { 0 } else { 1 + usize::from(low < 10.0) };
    format!("{:.digits$} ({low:.digits$} to {high:.digits$})", runs.median())
}

#[cfg(test)]
mod tests {
    use super::super::results::sample;
    use super::*;

    #[test]
    fn prose_stays_and_figures_change() {
        let first = with_results_table("", "one\n");
        assert!(first.starts_with("# CPU benchmarks\n\n<!-- figures"));
        let page = first.replace("# CPU", "Before.\n\n# CPU") + "\nAfter.\n";
        let second = with_results_table(&page, "two\n");
        assert_eq!(second, page.replace("one\n", "two\n"));
        assert_eq!(with_results_table(&second, "two\n"), second);
        assert!(with_results_table("Prose.\n", "one\n").starts_with("Prose.\n\n<!-- figures"));
    }

    #[test]
    fn the_table_has_every_figure() {
        let text = results_table(&sample());
        assert!(text.contains("22.0 GB/s (20.0 to 24.0)"), "{text}");
        assert!(text.contains("| b | prefill of 512, tokens/s | 201 (200 to 202) | 101 (100 to 102) | 151 (150 to 152) | 50 % | 1.33 |"), "{text}");
        assert!(text.contains("| b | decode at 2048, tokens/s | 15.0 (14.0 to 16.0) |"), "{text}");
        assert!(text.contains("| b | decode of 16 sequences behind 128 each, tokens/s | 41.0 "), "{text}");
        assert!(
            text.contains(
                "| b | start, s | 0.50 (0.50 to 0.50) | 1.00 (1.00 to 1.00) | 0.67 (0.67 to 0.67) | - | 0.75 |"
            ),
            "{text}"
        );
    }
}
