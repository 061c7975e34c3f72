//! The blocks of all numbers of tokens as bars: kernels, bytes and tokens a second, with fusion and without.

use std::fmt::Write;

const BAR: f64 = 16.0;
const GAP: f64 = 14.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 92.0;
const HEAD: f64 = 74.0;
/// Room for the figure behind a bar.
const FIGURE: f64 = 56.0;
const COLOURS: [&str; 3] = ["#7a9e4b", "#1f5fa8", "#e08a1e"];

/// What a panel shows of a block of so many tokens.
type PlottedValue = fn(u32, &Row) -> f64;

/// What was measured of a graph.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) kernels: usize,
    pub(super) megabytes: f64,
    pub(super) milliseconds: f64,
}

/// Blocks, by their tokens, as SVG.
pub(super) fn svg(blocks: &[(u32, Vec<Row>)]) -> String {
    let group = blocks.first().map_or(0.0, |(_, rows)| rows.len() as f64 * BAR + GAP);
    let (width, height) = (LEFT + 3.0 * (PANEL + FIGURE), HEAD + group * blocks.len() as f64);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">"
    );
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>");
    text(&mut out, 12.0, 20.0, "A block of the sizes of Llama 3.2 1B: named ops, and the same in plain ops");
    let names = blocks.first().into_iter().flat_map(|(_, rows)| rows);
    for (i, row) in names.enumerate() {
        let x = 12.0 + 130.0 * i as f64;
        let _ = writeln!(out, "<rect x=\"{x:.0}\" y=\"30\" width=\"12\" height=\"12\" fill=\"{}\"/>", COLOURS[i]);
        text(&mut out, x + 18.0, 40.0, row.name);
    }
    for (i, (tokens, _)) in blocks.iter().enumerate() {
        text(&mut out, 12.0, HEAD + group * i as f64 + (group - GAP) / 2.0 + 4.0, &format!("{tokens} tokens"));
    }
    let panels: [(&str, PlottedValue); 3] = [
        ("kernels", |_, row| row.kernels as f64),
        ("MB of operands", |_, row| row.megabytes),
        ("tokens/s", |tokens, row| 1e3 * f64::from(tokens) / row.milliseconds),
    ];
    for (i, (title, value)) in panels.into_iter().enumerate() {
        panel(&mut out, LEFT + i as f64 * (PANEL + FIGURE), title, blocks, value, group);
    }
    out.push_str("</svg>\n");
    out
}

fn panel(out: &mut String, left: f64, title: &str, blocks: &[(u32, Vec<Row>)], value: PlottedValue, group: f64) {
    text(out, left, 64.0, title);
    for (i, (tokens, rows)) in blocks.iter().enumerate() {
        let most = rows.iter().map(|row| value(*tokens, row)).fold(0.0, f64::max);
        for (j, row) in rows.iter().enumerate() {
            let (y, value) = (HEAD + group * i as f64 + BAR * j as f64, value(*tokens, row));
            let wide = (PANEL - 12.0) * value / most;
            let (high, colour) = (BAR - 3.0, COLOURS[j]);
            let _ = writeln!(
                out,
                "<rect x=\"{left:.0}\" y=\"{y:.0}\" width=\"{wide:.1}\" height=\"{high}\" fill=\"{colour}\"/>"
            );
            let digits = usize::from(value < 1000.0 && value.fract() != 0.0);
            text(out, left + wide + 5.0, y + 11.0, &format!("{value:.digits$}"));
        }
    }
}

fn text(out: &mut String, x: f64, y: f64, words: &str) {
    let _ = writeln!(out, "<text x=\"{x:.0}\" y=\"{y:.0}\">{words}</text>");
}
