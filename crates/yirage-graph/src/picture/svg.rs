//! Graphs as SVG.

use super::diagram::{Box, BoxKind, Diagram};
use super::layout::{DiagramLayout, HEAD, LINE, PAD, PositionedBox, SMALL, TITLE, TooLarge, layout};
use std::fmt::Write;
use yirage_ir::Graph;

/// Room around the picture.
const MARGIN: f64 = 16.0;

const STYLE: &str = "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;text-anchor:middle;\
fill:#1d2733}.t{font-size:12px;font-weight:600}.l{font-size:10px;fill:#4b5866}.r{font-size:11px;fill:#59636f;\
text-anchor:start}.e{fill:none;stroke:#8793a1;stroke-width:1.2}";

/// The graph as an SVG picture that needs nothing else: inputs, ops and outputs in their colours, regions framed, and a
/// tool tip with all that is known of each.
///
/// # Errors
/// A graph that is too large to be drawn.
pub fn svg(graph: &Graph) -> Result<String, TooLarge> {
    let diagram = Diagram::of(graph);
    let layout = layout(&diagram)?;
    let name = escaped(&graph.name);
    let (width, height) = (layout.width + 2.0 * MARGIN, layout.height + 2.0 * MARGIN + HEAD);
    // Writing to a String cannot fail.
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.1} {height:.1}\">"
    );
    let _ = writeln!(out, "<title>{name}</title>\n<style>{STYLE}</style>");
    out.push_str(
        "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" ",
    );
    out.push_str("orient=\"auto\"><path d=\"M0 0.8 L8 4 L0 7.2 z\" fill=\"#8793a1\"/></marker></defs>\n");
    out.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    let _ = writeln!(out, "<text class=\"r\" x=\"{MARGIN}\" y=\"{:.1}\">{name}</text>", MARGIN + 8.0);
    draw(&diagram, &layout, MARGIN, MARGIN + HEAD, &mut out);
    out.push_str("</svg>\n");
    Ok(out)
}

/// A layout whose top left corner lies at `x`, `y`.
fn draw(diagram: &Diagram, layout: &DiagramLayout, x: f64, y: f64, out: &mut String) {
    for place in &layout.boxes {
        draw_box(&diagram.boxes[place.shows], place, x + place.left, y + place.top, out);
    }
    for points in &layout.edges {
        draw_edge(points, x, y, out);
    }
}

fn draw_box(shown: &Box, place: &PositionedBox, x: f64, y: f64, out: &mut String) {
    let (width, height) = (place.width, place.height);
    let _ = writeln!(out, "<g><title>{}</title>", escaped(&shown.tip));
    let (fill, line, round) = look(shown.kind);
    let dashed = if shown.kind == BoxKind::Region { " stroke-dasharray=\"5 3\"" } else { "" };
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{round}\" fill=\"{fill}\" stroke=\"{line}\"{dashed}/>"
    );
    match (&place.inside, &shown.inside) {
        (Some(laid), Some(inside)) => {
            let title = escaped(&shown.title);
            let _ = writeln!(out, "<text class=\"r\" x=\"{:.1}\" y=\"{:.1}\">{title}</text></g>", x + PAD, y + 15.0);
            draw(&inside.diagram, laid, x + (width - laid.width) / 2.0, y + HEAD, out);
        }
        _ => {
            let middle = x + width / 2.0;
            let class = if shown.kind == BoxKind::Port { "l" } else { "t" };
            let first = y + (height - LINE * shown.lines.len() as f64) / 2.0 + 4.0;
            text(&shown.title, class, middle, first, shown.title.chars().count() as f64 * TITLE, out);
            for (n, line) in shown.lines.iter().enumerate() {
                let below = first + LINE * (n + 1) as f64;
                text(line, "l", middle, below, line.chars().count() as f64 * SMALL, out);
            }
            out.push_str("</g>\n");
        }
    }
}

/// A line of text. Its length is that of the box's measure, whatever font there is.
fn text(line: &str, class: &str, x: f64, y: f64, length: f64, out: &mut String) {
    let length = if class == "l" { line.chars().count() as f64 * SMALL } else { length };
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
        escaped(line)
    );
}

/// Upright through rows, curved between them.
fn draw_edge(points: &[(f64, f64)], x: f64, y: f64, out: &mut String) {
    out.push_str("<path class=\"e\" marker-end=\"url(#a)\" d=\"");
    for (n, pair) in points.windows(2).enumerate() {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]].map(|(a, b)| (x + a, y + b));
        if n == 0 {
            let _ = write!(out, "M{x0:.1} {y0:.1}");
        }
        if n % 2 == 0 {
            let _ = write!(out, "L{x1:.1} {y1:.1}");
        } else {
            let half = (y0 + y1) / 2.0;
            let _ = write!(out, "C{x0:.1} {half:.1} {x1:.1} {half:.1} {x1:.1} {y1:.1}");
        }
    }
    out.push_str("\"/>\n");
}

/// Fill, line and rounding of a box.
fn look(kind: BoxKind) -> (&'static str, &'static str, u32) {
    match kind {
        BoxKind::StepInput => ("#e2f3e2", "#4d8c4d", 12),
        BoxKind::Weight => ("#fdf0d5", "#b58a2a", 12),
        BoxKind::KvCache => ("#f0e4f7", "#8a5aa8", 12),
        BoxKind::Op => ("#e9f0fb", "#4a6fa5", 4),
        BoxKind::Output => ("#f9dfe0", "#b04a50", 12),
        BoxKind::Region => ("#f6f7f9", "#7b8794", 6),
        BoxKind::Port => ("#ffffff", "#b3bcc7", 9),
    }
}

/// Text of XML, which has no control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
