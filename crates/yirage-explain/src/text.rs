//! The report for people. What differs by the number of a layer alone stands once, with how often it is there.

use crate::alike::{grouped, without_numbers};
use crate::report::{DecisionReport, KernelReport, PassReport, Report};
use std::fmt::{self, Write};

/// The report as text. With `all`, every decision stands by itself.
pub fn text(report: &Report, all: bool) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(report, all, &mut out);
    out
}

fn write(report: &Report, all: bool, out: &mut String) -> fmt::Result {
    let (bucket, step) = (report.bucket, report.step);
    writeln!(out, "graph `{}` on {}, precision {}", report.graph, report.target, report.precision)?;
    writeln!(
        out,
        "a step of {} tokens of {} sequences; the plan takes up to {} tokens of up to {} sequences",
        step.tokens, step.seqs, bucket.tokens, bucket.seqs
    )?;
    writeln!(out, "\npasses:")?;
    for pass in &report.passes {
        write_pass(pass, all, out)?;
    }
    write_regions(report, out)?;
    write_kernels(report, out)?;
    write_memory(report, out)?;
    write_executor(report, out)?;
    match &report.variant {
        Some(variant) => writeln!(out, "\nvariant of the kernels: {variant}"),
        None => Ok(()),
    }
}

fn write_pass(pass: &PassReport, all: bool, out: &mut String) -> fmt::Result {
    let PassReport { pass: name, before, after, decisions } = pass;
    writeln!(out, "  {name}: {before} nodes, then {after}")?;
    let star = |text: &str| if all { text.to_owned() } else { without_numbers(text) };
    // What was decided of several values for one reason stands once too, unless all is wanted.
    let key =
        |d: &&DecisionReport| (d.done, star(&d.what), star(&d.why), if all { d.values.clone() } else { Vec::new() });
    for ((done, what, why, _), same) in grouped(decisions, key) {
        let times = if same.len() > 1 { format!(" ({} times)", same.len()) } else { String::new() };
        let verdict = if done { "done" } else { "refused" };
        let values = grouped(same.iter().flat_map(|d| &d.values).map(|v| star(v)), String::clone);
        let values: Vec<String> = values.into_iter().map(|(value, _)| value).collect();
        let about = if values.is_empty() { "all".into() } else { shortened(&values) };
        writeln!(out, "    {verdict}{times}: {about}: {what}: {why}")?;
    }
    Ok(())
}

/// The first and last of many names.
fn shortened(values: &[String]) -> String {
    match values {
        [a, b, .., z] if values.len() > 6 => format!("{a}, {b}, ... {z} ({} values)", values.len()),
        _ => values.join(", "),
    }
}

fn write_regions(report: &Report, out: &mut String) -> fmt::Result {
    writeln!(out, "\nregions:")?;
    let key = |r: &&crate::report::RegionReport| {
        let values: Vec<String> = r.values.iter().map(|v| without_numbers(v)).collect();
        (r.kind, values, r.ops.clone())
    };
    for ((kind, values, ops), same) in grouped(&report.regions, key) {
        let times = if same.len() > 1 { format!(" ({} times)", same.len()) } else { String::new() };
        writeln!(out, "  {kind}{times} of {} gives {}", ops.join(", "), shortened(&values))?;
        let reasons = same.first().map_or(&[][..], |region| &region.reasons);
        for reason in reasons {
            writeln!(out, "    {}", without_numbers(reason))?;
        }
    }
    Ok(())
}

fn write_kernels(report: &Report, out: &mut String) -> fmt::Result {
    writeln!(out, "\nkernels, the least time that the limits allow, the time measured, and the share of the limit:")?;
    for ceiling in &report.ceilings {
        writeln!(out, "  limit: {}: {:.1} 10^9/s", ceiling.limit, ceiling.per_second / 1e9)?;
    }
    if report.ceilings.is_empty() {
        writeln!(out, "  the device does not measure its limits: no time is predicted")?;
    }
    let key = |k: &&KernelReport| (k.kernel.clone(), k.op.clone(), without_numbers(&k.value));
    for ((kernel, op, value), same) in grouped(&report.kernels, key) {
        let sum = |of: fn(&KernelReport) -> Option<f64>| same.iter().map(|&k| of(k)).sum::<Option<f64>>();
        let (least, took) = (sum(|k| k.predicted_seconds), sum(|k| k.measured_seconds));
        let bound = same.first().and_then(|k| k.bound).map_or(String::new(), |bound| format!(" ({bound})"));
        let share = least.zip(took).filter(|(_, took)| *took > 0.0).map(|(least, took)| least / took);
        let share = share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0));
        let bytes: f64 = same.iter().map(|k| k.weight_bytes + k.cache_bytes + k.activation_bytes).sum();
        let times = same.len();
        let (least, took) = (time(least), time(took));
        writeln!(
            out,
            "  {times:4} x {op} `{value}` by {kernel}: {bytes:.0} bytes, least {least}{bound}, took {took}, {share}"
        )?;
    }
    let kernels = report.kernels.len();
    writeln!(out, "  {kernels} kernels, together at least {}", time(report.least_seconds))?;
    if let Some(m) = &report.measured {
        let (steps, whole, executor) = (m.steps, time(Some(m.step_seconds)), m.executor);
        writeln!(out, "  measured: medians of {steps} steps by `{executor}`, of which one takes {whole}")?;
        if m.dropped > 0 {
            writeln!(out, "  {} tasks had no room in the profile", m.dropped)?;
        }
    }
    Ok(())
}

/// A time with three digits.
fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".into(),
        Some(s) if s < 1e-3 => format!("{:.1} us", s * 1e6),
        Some(s) if s < 1.0 => format!("{:.2} ms", s * 1e3),
        Some(s) => format!("{s:.2} s"),
    }
}

fn write_memory(report: &Report, out: &mut String) -> fmt::Result {
    let memory = &report.memory;
    let (arena, all, alive) = (memory.arena_bytes, memory.value_bytes, memory.alive_bytes);
    writeln!(
        out,
        "\nmemory: an arena of {arena} bytes for {} values of {all} bytes; {alive} are alive at once",
        memory.values.len()
    )?;
    for value in &memory.values {
        let to = value.to.map_or("the end".into(), |to| format!("phase {to}"));
        writeln!(
            out,
            "  {:>12} + {:<12} `{}` {}, phase {} to {to}",
            value.offset, value.bytes, value.name, value.ty, value.from
        )?;
    }
    Ok(())
}

fn write_executor(report: &Report, out: &mut String) -> fmt::Result {
    let executor = &report.executor;
    writeln!(out, "\nexecutor: {} on {} workers: {}", executor.chosen, executor.workers, executor.why)?;
    for program in &executor.programs {
        match (program.tasks, program.waits) {
            (Some(tasks), Some(waits)) => writeln!(out, "  {}: {tasks} tasks, {waits} waits", program.executor)?,
            _ => writeln!(out, "  {}: made by the device", program.executor)?,
        }
    }
    Ok(())
}
