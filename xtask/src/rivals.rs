//! `cargo xtask bench-rivals`: our engine and others on the same files, in turn, and the page that says how it went.
//!
//! Every round runs every engine once for each model and test, in another order each time, and probes the memory's
//! bandwidth before and after: on a machine whose speed changes only what ran next to each other can be compared. Engines
//! that are not found are left out, loudly. This module runs programs and reads what they print; it computes no figure
//! other than medians and ratios.

mod child;
mod engines;
mod options;
mod page;
mod plot;
mod results;

use engines::BenchEngine;
use options::RivalOptions;
use results::{CeilingProbe, RivalResults};
use std::path::Path;

/// How to call it.
pub(crate) use options::USAGE;

/// Runs the comparison that `arguments` describe and writes its page.
///
/// # Errors
/// What went wrong, as text.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let options = RivalOptions::parse(root, arguments)?;
    let json = options.out.join("cpu.json");
    let results = match options.draw_only {
        true => RivalResults::read(&json)?,
        false => measure(root, &options)?,
    };
    if !options.draw_only {
        results.write(&json)?;
    }
    write(&options.out.join("cpu.svg"), &plot::svg(&results))?;
    let page = options.out.join("cpu.md");
    let old = std::fs::read_to_string(&page).unwrap_or_default();
    write(&page, &page::with_results_table(&old, &page::results_table(&results)))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn measure(root: &Path, options: &RivalOptions) -> Result<RivalResults, String> {
    // Before anything runs: a folder that cannot be made would be known only after the first round.
    std::fs::create_dir_all(&options.out).map_err(|e| format!("{}: {e}", options.out.display()))?;
    let engines = engines::find(root, options)?;
    let ours =
        engines.first().filter(|e| e.is_ours()).ok_or("yirage itself was not found: give --yirage or --build")?;
    let named = engines.iter().map(|engine| (engine.name.to_owned(), engine.version())).collect();
    let mut results = RivalResults::new(options, named, ours.machine(options)?);
    for round in 0..options.rounds {
        results.probes.push(probe(ours, options, round, "before")?);
        for model in &options.models {
            for test in &options.tests {
                for i in 0..engines.len() {
                    let engine = &engines[(i + round) % engines.len()];
                    if !engine.runs(model) {
                        continue;
                    }
                    let name = results::model_name(model);
                    eprintln!("round {} of {}: {name}: {}: {}", round + 1, options.rounds, test.name(), engine.name);
                    match engine.run(*test, model, options) {
                        Ok(found) => found.iter().for_each(|f| results.add(&name, engine.name, f)),
                        // One program that cannot run one test is no reason to lose all others.
                        Err(why) => eprintln!("ABSENT: {name}: {}: {}: {why}", test.name(), engine.name),
                    }
                }
            }
            // Hours of work are not lost with the last of them.
            results.write(&options.out.join("cpu.json"))?;
        }
        results.probes.push(probe(ours, options, round, "after")?);
    }
    Ok(results)
}

fn probe(ours: &BenchEngine, options: &RivalOptions, round: usize, when: &str) -> Result<CeilingProbe, String> {
    let limits = ours.limits(options)?;
    eprintln!("memory read: {:.1} GB/s", limits.memory);
    Ok(CeilingProbe { round, when: when.into(), memory: limits.memory, int8: limits.int8 })
}
