//! Template source to tokens, by the rules of Jinja: `trim_blocks` and `lstrip_blocks` on, the last newline dropped.

use super::fault::{Fault, JinjaResult};

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JinjaToken {
    /// Text outside of tags.
    Data(String),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    Text(String),
    Int(i128),
    Float(f64),
    /// An operator or bracket.
    Op(&'static str),
    End,
}

/// A token and the line it begins in.
#[derive(Clone, Debug)]
pub(super) struct LocatedToken {
    pub(super) token: JinjaToken,
    pub(super) line: u32,
}

/// Longer ones first, where one begins another.
const OPERATORS: [&str; 25] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",",
];

/// White space as Python's `str.isspace` has it.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Cuts `source` into tokens; the last one is [`JinjaToken::End`].
pub(super) fn tokens(source: &str) -> JinjaResult<Vec<LocatedToken>> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = source.strip_suffix('\n').unwrap_or(&source);
    let mut lexer = Lexer { rest: source, line: 1, line_starts: true, out: Vec::new() };
    lexer.run().map_err(|fault| fault.at(lexer.line))?;
    lexer.add(JinjaToken::End);
    Ok(lexer.out)
}

struct Lexer<'s> {
    rest: &'s str,
    line: u32,
    /// What was read last ended in a newline.
    line_starts: bool,
    out: Vec<LocatedToken>,
}

impl Lexer<'_> {
    fn add(&mut self, token: JinjaToken) {
        self.out.push(LocatedToken { token, line: self.line });
    }

    /// Reads `bytes` bytes.
    fn skip(&mut self, bytes: usize) {
        let (read, rest) = self.rest.split_at(bytes);
        self.line += read.bytes().filter(|&b| b == b'\n').count() as u32;
        if let Some(last) = read.chars().next_back() {
            self.line_starts = last == '\n';
        }
        self.rest = rest;
    }

    fn skip_space(&mut self) {
        self.skip(self.rest.len() - self.rest.trim_start_matches(is_space).len());
    }

    fn run(&mut self) -> JinjaResult<()> {
        while !self.rest.is_empty() {
            let Some(at) = next_tag(self.rest) else {
                let data = self.rest.to_owned();
                self.add(JinjaToken::Data(data));
                self.skip(self.rest.len());
                return Ok(());
            };
            let kind = self.rest.as_bytes()[at + 1];
            let sign = self.rest.as_bytes().get(at + 2).copied().filter(|b| matches!(b, b'-' | b'+'));
            let data = trim_before_tag(&self.rest[..at], kind, sign, self.line_starts);
            if !data.is_empty() {
                let data = data.to_owned();
                self.add(JinjaToken::Data(data));
            }
            self.skip(at + 2 + usize::from(sign.is_some()));
            match kind {
                b'#' => self.comment()?,
                b'%' if self.raw_begins() => self.raw()?,
                b'%' => self.tag(JinjaToken::BlockBegin, "%}", JinjaToken::BlockEnd)?,
                _ => self.tag(JinjaToken::VariableBegin, "}}", JinjaToken::VariableEnd)?,
            }
        }
        Ok(())
    }

    fn comment(&mut self) -> JinjaResult<()> {
        let end = self.rest.find("#}").ok_or_else(|| Fault::wrong("a comment has no end (`#}`)"))?;
        let sign = self.rest.as_bytes()[..end].last().copied();
        self.skip(end + 2);
        self.after_block(sign);
        Ok(())
    }

    /// White space behind a block or comment that ended with `sign` before its last two characters.
    fn after_block(&mut self, sign: Option<u8>) {
        match sign {
            Some(b'-') => self.skip_space(),
            Some(b'+') => {}
            _ if self.rest.starts_with('\n') => self.skip(1),
            _ => {}
        }
    }

    fn raw_begins(&self) -> bool {
        raw_head(self.rest, "raw").is_some()
    }

    /// `{% raw %}` up to `{% endraw %}`: nothing in between is read.
    fn raw(&mut self) -> JinjaResult<()> {
        let (head, stripped) = raw_head(self.rest, "raw").unwrap_or_default();
        self.skip(head);
        if stripped {
            self.skip_space();
        }
        let mut from = 0;
        while let Some(at) = self.rest[from..].find("{%").map(|at| from + at) {
            let inner = &self.rest[at + 2..];
            let sign = inner.as_bytes().first().copied().filter(|b| matches!(b, b'-' | b'+'));
            let skipped = at + 2 + usize::from(sign.is_some());
            let Some((tail, _)) = raw_head(&self.rest[skipped..], "endraw") else {
                from = at + 2;
                continue;
            };
            let data = trim_before_tag(&self.rest[..at], b'%', sign, self.line_starts).to_owned();
            self.add(JinjaToken::Data(data));
            let closing = self.rest.as_bytes()[skipped + tail - 3];
            self.skip(skipped + tail);
            self.after_block(Some(closing));
            return Ok(());
        }
        Err(Fault::wrong("`raw` has no `endraw`"))
    }

    /// The inside of a block or of a variable, up to its end outside of brackets.
    fn tag(&mut self, begin: JinjaToken, close: &str, end: JinjaToken) -> JinjaResult<()> {
        self.add(begin);
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            self.skip_space();
            if open.is_empty() && self.closes(close, &end) {
                return Ok(());
            }
            let Some(first) = self.rest.chars().next() else {
                return Err(Fault::wrong(format!("a tag has no end (`{close}`)")));
            };
            match first {
                '0'..='9' => self.number()?,
                '"' | '\'' => self.text(first)?,
                c if c.is_alphabetic() || c == '_' => self.name(),
                _ => self.operator(&mut open)?,
            }
        }
    }

    /// Reads the end of a tag, if it is there.
    fn closes(&mut self, close: &str, end: &JinjaToken) -> bool {
        let sign = self.rest.as_bytes().first().copied().filter(|b| matches!(b, b'-' | b'+'));
        let (skipped, sign) = match sign {
            _ if self.rest.starts_with(close) => (0, None),
            Some(b'+') if *end == JinjaToken::VariableEnd => return false,
            Some(sign) if self.rest[1..].starts_with(close) => (1, Some(sign)),
            _ => return false,
        };
        self.add(end.clone());
        self.skip(skipped + close.len());
        match end {
            JinjaToken::BlockEnd => self.after_block(sign),
            _ if sign.is_some() => self.skip_space(),
            _ => {}
        }
        true
    }

    fn operator(&mut self, open: &mut Vec<&'static str>) -> JinjaResult<()> {
        let op = OPERATORS.into_iter().find(|op| self.rest.starts_with(op));
        let Some(op) = op else {
            let c = self.rest.chars().next().unwrap_or_default();
            return Err(Fault::wrong(format!("character {c:?} is not expected here")));
        };
        match op {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" if open.pop() != Some(op) => {
                return Err(Fault::wrong(format!("`{op}` closes nothing")));
            }
            _ => {}
        }
        self.add(JinjaToken::Op(op));
        self.skip(op.len());
        Ok(())
    }

    fn name(&mut self) {
        let len = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let name = self.rest[..len].to_owned();
        self.add(JinjaToken::Name(name));
        self.skip(len);
    }

    fn number(&mut self) -> JinjaResult<()> {
        let digits = |text: &str, radix: u32| text.find(|c: char| !c.is_digit(radix) && c != '_').unwrap_or(text.len());
        let radix = match self.rest.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => 16,
            Some("0o") => 8,
            Some("0b") => 2,
            _ => 10,
        };
        let begin = if radix == 10 { 0 } else { 2 };
        let mut len = begin + digits(&self.rest[begin..], radix);
        let mut float = false;
        if radix == 10 {
            let tail = &self.rest[len..];
            if tail.starts_with('.') && tail[1..].starts_with(|c: char| c.is_ascii_digit()) {
                len += 1 + digits(&tail[1..], 10);
                float = true;
            }
            let tail = &self.rest[len..];
            let signed = tail.strip_prefix(['e', 'E']).map(|t| t.strip_prefix(['+', '-']).unwrap_or(t));
            if let Some(power) = signed.filter(|t| t.starts_with(|c: char| c.is_ascii_digit())) {
                len += tail.len() - power.len() + digits(power, 10);
                float = true;
            }
        }
        let written: String = self.rest[begin..len].chars().filter(|&c| c != '_').collect();
        let wrong = || Fault::wrong(format!("number `{}` is not valid, or beyond 128 bits", &self.rest[..len]));
        let token = match float {
            true => JinjaToken::Float(written.parse().map_err(|_| wrong())?),
            false => JinjaToken::Int(i128::from_str_radix(&written, radix).map_err(|_| wrong())?),
        };
        self.add(token);
        self.skip(len);
        Ok(())
    }

    fn text(&mut self, quote: char) -> JinjaResult<()> {
        let mut escaped = false;
        let end = self.rest[1..].find(|c: char| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.ok_or_else(|| Fault::wrong(format!("a string has no end ({quote})")))?;
        let text = unescaped(&self.rest[1..1 + end])?;
        self.add(JinjaToken::Text(text));
        self.skip(end + 2);
        Ok(())
    }
}

/// Where the next tag or comment begins.
fn next_tag(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    text.match_indices('{').map(|(at, _)| at).find(|&at| matches!(bytes.get(at + 1), Some(b'%' | b'{' | b'#')))
}

/// What stays of the text in front of a tag.
fn trim_before_tag(text: &str, kind: u8, sign: Option<u8>, line_starts: bool) -> &str {
    match sign {
        Some(b'-') => text.trim_end_matches(is_space),
        None if kind != b'{' => {
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            let blank = (line > 0 || line_starts) && text[line..].chars().all(is_space);
            if blank { &text[..line] } else { text }
        }
        _ => text,
    }
}

/// The length of `raw %}` or `raw -%}` at the beginning of `text`, and whether it strips what follows.
fn raw_head(text: &str, word: &str) -> Option<(usize, bool)> {
    let rest = text.trim_start_matches(is_space).strip_prefix(word)?.trim_start_matches(is_space);
    let signs: &[&str] = if word == "raw" { &["%}", "-%}"] } else { &["%}", "-%}", "+%}"] };
    let close = signs.iter().find(|close| rest.starts_with(**close))?;
    Some((text.len() - rest.len() + close.len(), close.starts_with('-')))
}

/// A string literal's escapes, as Python has them.
fn unescaped(text: &str) -> JinjaResult<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some((_, kind)) = chars.next() else { break };
        let mut code = |digits: usize, radix: u32| {
            let from = at + 2;
            let written = text.get(from..from + digits).filter(|t| t.chars().all(|c| c.is_digit(radix)));
            let value = written.and_then(|t| u32::from_str_radix(t, radix).ok()).and_then(char::from_u32);
            chars.by_ref().take(digits).for_each(|_| {});
            value.ok_or_else(|| Fault::wrong(format!("the escape `\\{kind}` is not followed by a character's number")))
        };
        match kind {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'v' => out.push('\x0b'),
            '\\' | '\'' | '"' => out.push(kind),
            '\n' => {}
            'x' => out.push(code(2, 16)?),
            'u' => out.push(code(4, 16)?),
            'U' => out.push(code(8, 16)?),
            '0'..='7' => {
                let mut value = kind.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    chars.next();
                }
                out.extend(char::from_u32(value));
            }
            other => out.extend(['\\', other]),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(source: &str) -> String {
        let placed = tokens(source).unwrap();
        placed
            .iter()
            .filter_map(|p| if let JinjaToken::Data(text) = &p.token { Some(text.as_str()) } else { None })
            .collect()
    }

    #[test]
    fn white_space_around_tags() {
        assert_eq!(data("a\n  {% if x %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
        assert_eq!(data("a \n {%- if x -%} \n b"), "ab");
        assert_eq!(data("a\n  {%+ if x %}b {{ x }}\n c {# n #}\nd"), "a\n  b \n c d");
        assert_eq!(data("{% raw %}\n{{ x }}{% endraw %}\ny"), "\n{{ x }}y");
    }

    #[test]
    fn literals() {
        let placed = tokens(r#"{{ 'a\n\'\u00e9\x41\101\q' 1_000 2.5e-1 0x1f }}"#).unwrap();
        let found: Vec<JinjaToken> = placed.into_iter().map(|p| p.token).collect();
        assert_eq!(found[1], JinjaToken::Text("a\n'éAA\\q".into()));
        assert_eq!(found[2..5], [JinjaToken::Int(1000), JinjaToken::Float(0.25), JinjaToken::Int(31)]);
    }
}
