//! Tokens of the text form.

/// One token and the line it stands on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GraphToken<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// Splits into words (names, numbers), what stands between two quotes, and single punctuation characters; `//` starts a
/// comment. A quote without its second one is a character like others, which nothing expects.
pub(super) fn tokens(text: &str) -> Vec<GraphToken<'_>> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line_text = line.split("//").next().unwrap_or("");
        split_line(line_text, i + 1, &mut out);
    }
    out
}

/// Whether a word may have the character.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

fn split_line<'a>(line: &'a str, number: usize, out: &mut Vec<GraphToken<'a>>) {
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some((quoted, after)) = rest.strip_prefix('"').and_then(|r| r.split_once('"')) {
            out.push(GraphToken { text: quoted, line: number });
            rest = after.trim_start();
            continue;
        }
        let len = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        out.push(GraphToken { text: &rest[..len], line: number });
        rest = rest[len..].trim_start();
    }
}
