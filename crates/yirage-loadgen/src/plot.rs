//! Runs as a picture: latencies and throughput over what was asked of the server. One SVG file that needs nothing else.

use std::fmt::Write;

const WIDTH: f64 = 900.0;
const PANEL: f64 = 260.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 170.0;
const COLOURS: [&str; 6] = ["#3366cc", "#dc7633", "#1e8449", "#8e44ad", "#b7950b", "#c0392b"];

/// One value of a line in a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Which panel: what is measured, and in which unit.
    pub panel: String,
    /// Which line.
    pub line: String,
    /// What was asked: `rate 4`.
    pub at: String,
    /// The value.
    pub value: f64,
}

/// The picture. Panels, lines and what was asked stand in the order in which they come first.
pub fn plot(title: &str, points: &[Point]) -> String {
    let panels = firsts(points.iter().map(|point| point.panel.as_str()));
    let height = 50.0 + PANEL * panels.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"16\">{}</text>\n",
        escaped(title)
    );
    for (number, name) in panels.iter().enumerate() {
        let of: Vec<&Point> = points.iter().filter(|point| point.panel == *name).collect();
        panel(name, &of, 50.0 + PANEL * number as f64, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn firsts<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn panel(name: &str, points: &[&Point], top: f64, out: &mut String) {
    let places = firsts(points.iter().map(|point| point.at.as_str()));
    let most = points.iter().map(|point| point.value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scale = round_up(most);
    let (low, high) = (top + PANEL - 45.0, top + 30.0);
    let right = WIDTH - RIGHT;
    let x = |at: usize| LEFT + (right - LEFT) * (at as f64 + 0.5) / places.len().max(1) as f64;
    let y = |value: f64| low - (low - high) * (value / scale).clamp(0.0, 1.0);
    // Writing into a string cannot fail, here and below.
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>", top + 15.0, escaped(name));
    for tick in 0..=4 {
        let value = scale * f64::from(tick) / 4.0;
        let at = y(value);
        let _ = writeln!(out, "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>");
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            short(value)
        );
    }
    for (number, place) in places.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(number),
            low + 18.0,
            escaped(place)
        );
    }
    for (number, line) in firsts(points.iter().map(|point| point.line.as_str())).iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let of = points.iter().filter(|point| point.line == *line && point.value.is_finite());
        let of = of.filter_map(|point| Some((x(places.iter().position(|p| *p == point.at)?), y(point.value))));
        let of: Vec<(f64, f64)> = of.collect();
        let joined: Vec<String> = of.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            joined.join(" ")
        );
        for (x, y) in of {
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            right + 10.0,
            high + 16.0 * (number as f64 + 1.0),
            escaped(line)
        );
    }
}

/// The next number of 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_and_names_are_escaped() {
        let point =
            |line: &str, at: &str, value| Point { panel: "TTFT (ms)".into(), line: line.into(), at: at.into(), value };
        let points =
            [point("p50", "1", 10.0), point("p50", "2", 20.0), point("p99", "1", 45.0), point("p99", "2", f64::NAN)];
        let svg = plot("a <b> & c", &points);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("a &lt;b&gt; &amp; c") && !svg.contains("<b>"));
    }

    #[test]
    fn scales_are_round() {
        for (value, scale) in [(0.0, 1.0), (0.7, 1.0), (1.0, 1.0), (1.1, 2.0), (45.0, 50.0), (51.0, 100.0)] {
            assert!((round_up(value) - scale).abs() < 1e-9, "{value}");
        }
    }
}
