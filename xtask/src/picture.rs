//! A recorded terminal as a picture: `docs/pictures/NAME.txt`, what was typed and what came, becomes `NAME.svg`.
//!
//! A line that begins with `$ ` was typed. Everything else stands as the program wrote it; lines too long for the
//! picture are broken between words.

use std::fmt::Write;
use std::fs;
use std::path::Path;

pub(crate) const USAGE: &str = "       cargo xtask pictures   draw the recorded terminals of docs/pictures\n";

/// Letters of a line.
const COLUMNS: usize = 100;
const LETTER: f64 = 8.0;
const LINE: f64 = 19.0;
const EDGE: f64 = 18.0;
/// Height of the bar above the text.
const BAR: f64 = 30.0;

/// Draws every recording below `root`.
///
/// # Errors
/// What the system said of a file.
pub(crate) fn draw(root: &Path) -> Result<(), String> {
    for (text, picture) in recordings(root)? {
        let svg = svg(&read(&text)?);
        fs::write(&picture, svg).map_err(|e| format!("{}: {e}", picture.display()))?;
    }
    Ok(())
}

/// Each recording with its picture.
fn recordings(root: &Path) -> Result<Vec<(std::path::PathBuf, std::path::PathBuf)>, String> {
    let folder = root.join("docs/pictures");
    let error = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.extension().is_some_and(|end| end == "txt") {
            found.push((path.clone(), path.with_extension("svg")));
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn svg(recording: &str) -> String {
    let lines: Vec<(bool, String)> = recording.lines().flat_map(broken).collect();
    let (width, height) = (2.0 * EDGE + COLUMNS as f64 * LETTER, BAR + EDGE + lines.len() as f64 * LINE + EDGE / 2.0);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\">"
    );
    let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f27\"/>");
    for (i, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        let _ = writeln!(out, "<circle cx=\"{}\" cy=\"16\" r=\"5\" fill=\"{colour}\"/>", 20 + 18 * i);
    }
    for (i, (typed, line)) in lines.iter().enumerate() {
        let y = BAR + EDGE + i as f64 * LINE;
        let style = if *typed { "fill=\"#7fd1ae\" font-weight=\"bold\"" } else { "fill=\"#d7dae0\"" };
        // The length keeps letters in their columns whatever the font.
        let length = line.chars().count() as f64 * LETTER;
        let _ = writeln!(
            out,
            "<text x=\"{EDGE}\" y=\"{y}\" {style} xml:space=\"preserve\" textLength=\"{length}\" \
             lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            escaped(line)
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A line and whether it was typed, in pieces that fit.
fn broken(line: &str) -> Vec<(bool, String)> {
    let typed = line.starts_with("$ ");
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let used = pieces.last().map_or(0, |piece| piece.chars().count());
            let whole = word.iter().collect::<String>().trim_end().chars().count();
            if used + whole > COLUMNS && used > 0 {
                pieces.push(String::new());
                continue;
            }
            let rest = word.split_off(word.len().min(COLUMNS - used));
            pieces.last_mut().expect("there is a piece").extend(std::mem::replace(&mut word, rest));
        }
    }
    pieces
        .into_iter()
        .map(|piece| (typed, piece.trim_end().to_owned()))
        .filter(|(_, piece)| !piece.is_empty())
        .collect()
}

fn escaped(line: &str) -> String {
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_show_what_was_recorded() {
        let recordings = recordings(crate::root()).unwrap();
        assert!(!recordings.is_empty());
        for (text, picture) in recordings {
            let stored = read(&picture).unwrap();
            assert!(stored == svg(&read(&text).unwrap()), "{}: run `cargo xtask pictures`", picture.display());
        }
    }

    #[test]
    fn long_lines_break_between_words() {
        let line = format!("{} {}", "a".repeat(90), "b".repeat(20));
        assert_eq!(broken(&line), [(false, "a".repeat(90)), (false, "b".repeat(20))]);
        assert_eq!(broken(&"c".repeat(150)), [(false, "c".repeat(100)), (false, "c".repeat(50))]);
        assert_eq!(broken("$ yirage run"), [(true, "$ yirage run".to_owned())]);
    }
}
