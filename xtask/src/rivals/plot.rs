//! The plot: for each kind of test a panel, in it for each model a bar of every engine, as a multiple of the best rival's
//! speed, with its tokens a second behind it.

use super::results::RivalResults;
use std::fmt::Write;

const BAR: f64 = 15.0;
const GAP: f64 = 9.0;
const PANEL: f64 = 330.0;
const HEAD: f64 = 78.0;
/// Room for the figure behind a bar.
const FIGURE: f64 = 62.0;
/// Width of a letter at the size of labels, rounded up: where a font is wider, labels still do not touch.
const LETTER: f64 = 7.2;
/// White around letters, so that they are read where the line of the best rival passes behind them.
const HALO: &str = "paint-order=\"stroke\" stroke=\"white\" stroke-width=\"3\"";
const COLOURS: [&str; 5] = ["#1f5fa8", "#e08a1e", "#f0bf6f", "#7a9e4b", "#9a6fb0"];

/// The plot as SVG.
pub(super) fn svg(results: &RivalResults) -> String {
    let panels = panels(results);
    let names = results.models.iter().map(|m| m.chars().count()).max().unwrap_or(0);
    let left = 16.0 + names as f64 * LETTER;
    let group = results.engines.len() as f64 * BAR + GAP;
    let (width, height) =
        (left + panels.len() as f64 * (PANEL + 24.0) + 8.0, HEAD + group * results.models.len() as f64 + 14.0);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">"
    );
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>");
    legend(results, &mut out);
    for (i, model) in results.models.iter().enumerate() {
        let y = HEAD + group * i as f64 + (group - GAP) / 2.0 + 4.0;
        text(&mut out, left - 8.0, y, "end", model);
    }
    for (i, test) in panels.iter().enumerate() {
        panel(results, test, left + i as f64 * (PANEL + 24.0), group, height, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Tests that are drawn: all whose figures are rates, but of batches only the largest.
fn panels(results: &RivalResults) -> Vec<String> {
    let mut tests: Vec<&str> = Vec::new();
    for model in &results.models {
        for test in results.tests(model) {
            if !tests.contains(&test) && (test.starts_with("prefill") || test.starts_with("decode")) {
                tests.push(test);
            }
        }
    }
    let batches = results.models.iter().flat_map(|m| results.tests(m)).filter(|t| t.starts_with("batch"));
    let count = |t: &&str| t.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
    tests.extend(batches.max_by_key(count));
    tests.into_iter().map(String::from).collect()
}

fn legend(results: &RivalResults, out: &mut String) {
    text(out, 12.0, 20.0, "start", "Tokens/s as a multiple of the best rival's median; the figures are tokens/s");
    let mut x = 12.0;
    for (i, (name, _)) in results.engines.iter().enumerate() {
        let _ = writeln!(out, "<rect x=\"{x:.0}\" y=\"32\" width=\"12\" height=\"12\" fill=\"{}\"/>", colour(i));
        text(out, x + 18.0, 42.0, "start", name);
        x += 18.0 + (name.chars().count() as f64 + 3.0) * LETTER;
    }
}

fn panel(results: &RivalResults, test: &str, left: f64, group: f64, height: f64, out: &mut String) {
    let title = match test {
        "prefill" => format!("prefill of {}", results.prompt),
        "decode" => format!("decode of {}", results.generate),
        other => other.replace("batch", "decode, sequences:"),
    };
    text(out, left, 66.0, "start", &title);
    let multiple = |model: &str, engine: &str| {
        let best = results.best_rival(model, test)?.1;
        let median = results.of(model, test, engine)?.median();
        Some((median / best, median))
    };
    let engines = || results.engines.iter().map(|(name, _)| name.as_str());
    let all = results.models.iter().flat_map(|m| engines().filter_map(move |e| multiple(m, e)));
    let most = all.fold(1.2f64, |most, (ratio, _)| most.max(ratio));
    let unit = (PANEL - FIGURE) / most;
    let x = left + unit;
    let _ = writeln!(
        out,
        "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#555\" stroke-dasharray=\"3 3\"/>",
        HEAD - 6.0,
        height - 12.0
    );
    for (i, model) in results.models.iter().enumerate() {
        for (j, engine) in engines().enumerate() {
            let Some((ratio, median)) = multiple(model, engine) else { continue };
            let y = HEAD + group * i as f64 + BAR * j as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                ratio * unit,
                BAR - 2.0,
                colour(j)
            );
            let digits = if median >= 100.0 { 0 } else { 1 };
            text(out, left + ratio * unit + 5.0, y + 11.0, "start", &format!("{median:.digits$}"));
        }
    }
}

fn colour(engine: usize) -> &'static str {
    COLOURS[engine % COLOURS.len()]
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {HALO}>{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::super::results::sample;
    use super::*;

    #[test]
    fn every_engine_has_its_bar_in_every_panel() {
        let results = sample();
        let svg = svg(&results);
        assert_eq!(panels(&results), ["prefill", "decode", "decode at 2048", "batch 16"]);
        // two models in four panels, the legend, and the background
        assert_eq!(svg.matches("<rect").count(), 3 * 2 * 4 + 3 + 1);
        assert_eq!(svg.matches("<line").count(), 4);
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.contains(">201</text>") && svg.contains("decode at 2048"));
    }

    #[test]
    fn figures_stay_inside_their_panel() {
        let results = sample();
        let svg = svg(&results);
        let number = |line: &str, name: &str| -> f64 {
            let rest = line.split_once(&format!("{name}=\"")).map(|(_, r)| r).unwrap_or_default();
            rest.split('"').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
        };
        let width = number(svg.lines().next().unwrap_or_default(), "width");
        for line in svg.lines().filter(|l| l.starts_with("<rect x")) {
            assert!(number(line, "x") + number(line, "width") + FIGURE - 6.0 < width + 1.0, "{line}");
        }
    }
}
