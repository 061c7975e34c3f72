//! The report as a picture: a bar for each kernel, predicted and measured, and the memory map over the phases.

use crate::report::{KernelReport, PlanMemoryReport, Report};
use std::fmt::{self, Write};

/// Width of the picture.
const WIDTH: f64 = 1100.0;
/// Where bars begin, and where they end at most.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 960.0;
/// Height of a kernel's row.
const ROW: f64 = 18.0;
/// Height of the memory map.
const MAP: f64 = 420.0;
/// Most letters of a label.
const LABEL: usize = 46;
/// Marks of an axis.
const MARKS: u32 = 5;

const STYLE: &str = "<style>text{font:11px sans-serif;fill:#222}.title{font-size:14px;font-weight:bold}.small{font-size:9px}\
.least{fill:#9db8d9}.took{fill:none;stroke:#c2572b;stroke-width:1.5}.axis{stroke:#ccc}.value{stroke:#fff;stroke-width:.5}</style>";

/// The picture, as SVG.
pub fn svg(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> fmt::Result {
    let bars = 70.0 + ROW * report.kernels.len() as f64;
    let height = bars + 60.0 + MAP + 50.0;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">"
    )?;
    writeln!(out, "{STYLE}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
    write_bars(report, out)?;
    write_map(&report.memory, bars + 40.0, out)?;
    writeln!(out, "</svg>")
}

fn text(out: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) -> fmt::Result {
    let text = escaped(text);
    writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

fn write_bars(report: &Report, out: &mut String) -> fmt::Result {
    let took = if report.measured.is_some() { " and time measured (framed)" } else { "" };
    let title = format!("{} on {}: least time of each kernel (filled){took}", report.graph, report.target);
    text(out, "title", (10.0, 22.0), "start", &title)?;
    let times = report.kernels.iter().flat_map(|k| [k.predicted_seconds, k.measured_seconds]).flatten();
    let longest = times.fold(0.0, f64::max);
    let bottom = 60.0 + ROW * report.kernels.len() as f64;
    if longest > 0.0 {
        for mark in 0..=MARKS {
            let share = f64::from(mark) / f64::from(MARKS);
            let x = LEFT + (RIGHT - LEFT) * share;
            writeln!(out, "<line class=\"axis\" x1=\"{x:.1}\" y1=\"48\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>")?;
            text(out, "small", (x, 44.0), "middle", &format!("{:.1} us", longest * share * 1e6))?;
        }
    } else {
        text(
            out,
            "small",
            (LEFT, 44.0),
            "start",
            "no times: the device does not measure its limits, and nothing was run",
        )?;
    }
    for (row, kernel) in report.kernels.iter().enumerate() {
        write_bar(kernel, 52.0 + ROW * row as f64, longest, out)?;
    }
    Ok(())
}

fn write_bar(kernel: &KernelReport, top: f64, longest: f64, out: &mut String) -> fmt::Result {
    let label = clipped(&format!("{} {} {}", kernel.step, kernel.op, kernel.value));
    text(out, "", (LEFT - 8.0, top + 12.0), "end", &label)?;
    let width = |seconds: f64| if longest > 0.0 { (RIGHT - LEFT) * seconds / longest } else { 0.0 };
    let bar = |out: &mut String, class: &str, seconds: Option<f64>, inset: f64| match seconds {
        Some(seconds) => {
            let (y, w, h) = (top + inset, width(seconds).max(0.5), ROW - 2.0 * inset);
            writeln!(out, "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"/>")
        }
        None => Ok(()),
    };
    bar(out, "least", kernel.predicted_seconds, 4.0)?;
    bar(out, "took", kernel.measured_seconds, 2.5)?;
    let share = kernel.share_of_limit.map(|share| format!("{:.0} %", share * 100.0));
    let bound = kernel.bound.map(str::to_owned);
    let said: Vec<String> = share.into_iter().chain(bound).collect();
    text(out, "small", (RIGHT + 10.0, top + 12.0), "start", &said.join(" of "))
}

fn write_map(memory: &PlanMemoryReport, top: f64, out: &mut String) -> fmt::Result {
    let (arena, alive) = (memory.arena_bytes, memory.alive_bytes);
    let title = format!("memory: {arena} bytes over {} phases; at most {alive} are alive at once", memory.phases);
    text(out, "title", (10.0, top), "start", &title)?;
    let (top, phases) = (top + 16.0, f64::from(memory.phases.max(1)));
    let (left, right) = (90.0, WIDTH - 20.0);
    let x = |phase: f64| left + (right - left) * phase / phases;
    let y = |byte: u64| top + MAP * byte as f64 / arena.max(1) as f64;
    for mark in 0..=MARKS {
        let byte = (u128::from(arena) * u128::from(mark) / u128::from(MARKS)) as u64;
        let at = y(byte);
        writeln!(out, "<line class=\"axis\" x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>")?;
        text(out, "small", (left - 6.0, at + 3.0), "end", &byte.to_string())?;
    }
    for (i, value) in memory.values.iter().enumerate() {
        let from = x(f64::from(value.from));
        let to = x(value.to.map_or(phases, |to| f64::from(to) + 1.0));
        let (at, width, height) = (y(value.offset), to - from, y(value.offset + value.bytes) - y(value.offset));
        // Neighbours differ in hue by the golden angle.
        let hue = (i as f64 * 137.508) % 360.0;
        writeln!(
            out,
            "<rect class=\"value\" x=\"{from:.1}\" y=\"{at:.1}\" width=\"{width:.1}\" height=\"{:.2}\" \
             fill=\"hsl({hue:.0},45%,72%)\"><title>{}: {}, bytes {} to {}</title></rect>",
            height.max(0.5),
            escaped(&value.name),
            escaped(&value.ty),
            value.offset,
            value.offset + value.bytes
        )?;
        let name = &value.name;
        // A letter is about six wide.
        if height >= 11.0 && width >= 6.0 * name.chars().count() as f64 + 4.0 {
            text(out, "small", (from + width / 2.0, at + height / 2.0 + 3.0), "middle", name)?;
        }
    }
    text(out, "small", (left, top + MAP + 16.0), "start", "phase 0")?;
    text(out, "small", (right, top + MAP + 16.0), "end", &format!("phase {}", memory.phases.saturating_sub(1)))
}

/// At most so many letters.
fn clipped(label: &str) -> String {
    if label.chars().count() <= LABEL {
        return label.to_owned();
    }
    label.chars().take(LABEL - 3).chain("...".chars()).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
