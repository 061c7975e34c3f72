//! Regular expressions of tokenizer files, which are written for Oniguruma, in the syntax of the matchers used here.
//!
//! The two syntaxes share most of their text and differ in what it means: `^` begins a line, `x{2}+` is no possessive
//! repeat, `x{,3}` is a repeat, `\w` has no joiners, `[[:alpha:]]` is of Unicode, an option within a group holds for
//! the alternatives behind it. All that is rewritten here; what cannot be rewritten is refused with its name.
//!
//! Knows nothing of matching; see the reference of Oniguruma's own syntax (`doc/RE` and `doc/SYNTAX.md` there).

use std::iter::Peekable;
use std::str::Chars;

use super::limits;

/// What `\w` stands for in a class, and outside of one, where some numbers of Latin-1 are of a word as well.
const WORD: &str = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}";
const LONE_WORD: &str = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}";

/// Possessive repeats in published patterns that match exactly what the plain repeats do, since what follows cannot
/// begin with what would be given back. The plain ones need no backtracking matcher.
const EASED: [(&str, &str); 2] = [
    (r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"[^\r\n\p{L}\p{N}]?\p{L}+"),
    (r" ?[^\s\p{L}\p{N}]++[\r\n]*", r" ?[^\s\p{L}\p{N}]+[\r\n]*"),
];

/// Characters that are equal to several without regard to case: `ß` to `ss`. Where letters may be of any case, these
/// sequences match one character, which the matchers here do not do.
const MULTIPLE: [&str; 6] = ["ss", "st", "ff", "fi", "fl", "i\u{307}"];

/// `source` in the syntax of this crate's matchers, or what about it cannot be said there.
pub(super) fn translate(source: &str) -> Result<String, String> {
    let eased = EASED.iter().fold(source.to_owned(), |text, (from, to)| text.replace(from, to));
    let mut parser = OnigurumaParser { rest: eased.chars().peekable(), depth: 0 };
    let mut out = String::with_capacity(eased.len() * 2);
    parser.alternatives(Flags::default(), &mut out)?;
    match parser.rest.next() {
        None => Ok(out),
        Some(_) => Err("a `)` without a group".to_owned()),
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    /// Letters may be of any case.
    any_case: bool,
    /// A point is also an end of line.
    all: bool,
    /// White space and comments are no part of the pattern.
    spaced: bool,
}

struct OnigurumaParser<'p> {
    rest: Peekable<Chars<'p>>,
    depth: usize,
}

/// What was read last, as far as a repeat needs to know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Anchor,
    Item,
}

impl OnigurumaParser<'_> {
    fn take(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    /// Takes `text` if it comes next.
    fn take_all(&mut self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        if text.chars().all(|c| ahead.next_if_eq(&c).is_some()) {
            self.rest = ahead;
            return true;
        }
        false
    }

    /// Reads to the end of the group that is open.
    fn alternatives(&mut self, mut flags: Flags, out: &mut String) -> Result<(), String> {
        self.depth += 1;
        if self.depth > limits::MAX_PATTERN_DEPTH {
            return Err(format!("more than {} groups in each other", limits::MAX_PATTERN_DEPTH));
        }
        let mut opened = 0;
        let mut last = (Last::Nothing, out.len());
        let mut literal = String::new();
        while let Some(&c) = self.rest.peek() {
            if c == ')' {
                break;
            }
            if flags.spaced && self.skip_spacing() {
                continue;
            }
            if self.quantifier_is_next() {
                literal.clear();
                last = self.repeat(last, out)?;
                continue;
            }
            let start = out.len();
            if c == '|' {
                self.rest.next();
                out.push('|');
                literal.clear();
                last = (Last::Nothing, out.len());
            } else if self.take_all("(?#") {
                self.comment()?;
            } else if let Some(changed) = self.option(flags)? {
                // An option holds to the end of its group, alternatives included.
                flags = changed;
                out.push_str("(?:");
                opened += 1;
                last = (Last::Nothing, out.len());
            } else {
                last = (self.item(flags, &mut literal, out)?, start);
            }
        }
        out.extend(std::iter::repeat_n(')', opened));
        self.depth -= 1;
        Ok(())
    }

    fn skip_spacing(&mut self) -> bool {
        match self.rest.peek() {
            Some(' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') => {
                self.rest.next();
                true
            }
            Some('#') => {
                while self.rest.next().is_some_and(|c| c != '\n') {}
                true
            }
            _ => false,
        }
    }

    fn comment(&mut self) -> Result<(), String> {
        loop {
            match self.rest.next() {
                Some(')') => return Ok(()),
                Some(_) => {}
                None => return Err("a comment without an end".to_owned()),
            }
        }
    }

    /// An option without a group of its own, such as `(?i)`: the flags from here on.
    fn option(&mut self, flags: Flags) -> Result<Option<Flags>, String> {
        let before = self.rest.clone();
        if self.take_all("(?")
            && let Some((changed, false)) = self.flags(flags)?
        {
            return Ok(Some(changed));
        }
        self.rest = before;
        Ok(None)
    }

    /// The letters of options and whether a group follows; `None` where these are no options.
    fn flags(&mut self, mut flags: Flags) -> Result<Option<(Flags, bool)>, String> {
        let mut on = true;
        let mut any = false;
        while let Some(&c) = self.rest.peek() {
            match c {
                '-' => on = false,
                'i' => flags.any_case = on,
                'm' => flags.all = on,
                'x' => flags.spaced = on,
                ')' | ':' if any => {
                    self.rest.next();
                    return Ok(Some((flags, c == ':')));
                }
                'a'..='z' | 'A'..='Z' if c != 'P' => return Err(format!("the option `{c}`")),
                _ => return Ok(None),
            }
            any = true;
            self.rest.next();
        }
        Ok(None)
    }

    fn item(&mut self, flags: Flags, literal: &mut String, out: &mut String) -> Result<Last, String> {
        let Some(c) = self.rest.next() else { return Ok(Last::Nothing) };
        if c != '\\' && !matches!(c, '(' | '[' | '.' | '^' | '$') {
            return self.literal(c, flags, literal, out);
        }
        match c {
            '(' => {
                literal.clear();
                return self.group(flags, out);
            }
            '[' => self.class(flags, out)?,
            '.' if flags.all => out.push_str("(?s:.)"),
            '.' => out.push_str(r"[^\n]"),
            // No line begins at the end of the text.
            '^' => out.push_str(r"(?:\A|(?m:^)(?!\z))"),
            '$' => out.push_str("(?m:$)"),
            _ => return self.escape(flags, literal, out),
        }
        literal.clear();
        Ok(if matches!(c, '^' | '$') { Last::Anchor } else { Last::Item })
    }

    fn literal(&mut self, c: char, flags: Flags, literal: &mut String, out: &mut String) -> Result<Last, String> {
        if !flags.any_case {
            push_literal(c, out);
            return Ok(Last::Item);
        }
        literal.extend(c.to_lowercase());
        check_cases(c)?;
        if let Some(found) = MULTIPLE.iter().find(|several| literal.ends_with(**several)) {
            return Err(format!("{found:?} of any case, which one character also matches"));
        }
        out.push_str("(?i:");
        push_literal(c, out);
        out.push(')');
        Ok(Last::Item)
    }

    fn group(&mut self, flags: Flags, out: &mut String) -> Result<Last, String> {
        let mut inner = flags;
        let mut last = Last::Item;
        if self.take('?') {
            let openers = [":", "=", "!", ">", "<=", "<!"];
            if let Some(opener) = openers.iter().find(|o| self.take_all(o)) {
                out.push_str("(?");
                out.push_str(opener);
                if !matches!(*opener, ":" | ">") {
                    last = Last::Anchor;
                }
            } else if let Some((changed, true)) = self.flags(flags)? {
                inner = changed;
                out.push_str("(?:");
            } else {
                return Err(format!("groups that begin with `(?{}`", self.rest.peek().copied().unwrap_or(' ')));
            }
        } else {
            out.push('(');
        }
        self.alternatives(inner, out)?;
        if !self.take(')') {
            return Err("a group without an end".to_owned());
        }
        out.push(')');
        Ok(last)
    }

    fn escape(&mut self, flags: Flags, literal: &mut String, out: &mut String) -> Result<Last, String> {
        let Some(c) = self.rest.next() else { return Err("a `\\` at the end".to_owned()) };
        if let Some(c) = self.character(c)? {
            return self.literal(c, flags, literal, out);
        }
        literal.clear();
        let word = format!("[{LONE_WORD}]");
        let (yes, no) = (format!("(?<={word})"), format!("(?<!{word})"));
        match c {
            'w' => out.push_str(&word),
            'W' => out.push_str(&format!("[^{LONE_WORD}]")),
            'b' => out.push_str(&format!("(?:{yes}(?!{word})|{no}(?={word}))")),
            'B' => out.push_str(&format!("(?:{yes}(?={word})|{no}(?!{word}))")),
            's' | 'S' => out.extend(['\\', c]),
            'd' => out.push_str(r"\p{Nd}"),
            'D' => out.push_str(r"\P{Nd}"),
            'h' => out.push_str("[0-9A-Fa-f]"),
            'H' => out.push_str("[^0-9A-Fa-f]"),
            'N' => out.push_str(r"[^\n]"),
            'O' => out.push_str("(?s:.)"),
            'R' => out.push_str(r"(?>\r\n|[\n-\r\x{85}\x{2028}\x{2029}])"),
            'A' | 'z' => out.extend(['\\', c]),
            'Z' => out.push_str(r"(?=\n?\z)"),
            'p' | 'P' => out.push_str(&self.property(c == 'P')?),
            '1'..='9' if !flags.any_case => {
                if self.rest.peek().is_some_and(char::is_ascii_digit) {
                    return Err("references beyond `\\9`".to_owned());
                }
                out.push_str(&format!("(?:\\{c})"));
            }
            other => return Err(format!("`\\{other}`")),
        }
        Ok(if matches!(c, 'b' | 'B' | 'A' | 'z' | 'Z') { Last::Anchor } else { Last::Item })
    }

    /// The character that an escape stands for; `None` where it stands for something else.
    fn character(&mut self, c: char) -> Result<Option<char>, String> {
        let c = match c {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'v' => '\x0b',
            'f' => '\x0c',
            'a' => '\x07',
            'e' => '\x1b',
            'x' => self.hexadecimal()?,
            'u' => scalar(&self.digits(16, 4, 4)?, 16)?,
            '0' => scalar(&format!("0{}", self.digits(8, 0, 2)?), 8)?,
            'c' | 'C' | 'M' | 'g' | 'k' | 'K' | 'G' | 'X' | 'y' | 'Y' => return Err(format!("`\\{c}`")),
            '1'..='9'
            | 'w'
            | 'W'
            | 'b'
            | 'B'
            | 's'
            | 'S'
            | 'd'
            | 'D'
            | 'h'
            | 'H'
            | 'N'
            | 'O'
            | 'R'
            | 'A'
            | 'z'
            | 'Z'
            | 'p'
            | 'P' => return Ok(None),
            other => other,
        };
        Ok(Some(c))
    }

    /// Behind `\x`: a number in braces, or the bytes of one character, each with its own `\x`.
    fn hexadecimal(&mut self) -> Result<char, String> {
        if self.take('{') {
            let found = scalar(&self.digits(16, 1, 8)?, 16)?;
            return if self.take('}') { Ok(found) } else { Err("`\\x{` without an end".to_owned()) };
        }
        let mut bytes = Vec::new();
        loop {
            let digits = self.digits(16, 0, 2)?;
            bytes.push(u8::from_str_radix(&format!("0{digits}"), 16).map_err(|e| e.to_string())?);
            match std::str::from_utf8(&bytes) {
                Ok(text) => return text.chars().next().ok_or_else(|| "an empty character".to_owned()),
                Err(e) if e.error_len().is_none() && self.take_all(r"\x") => {}
                Err(_) => return Err("`\\x` with bytes that are no character".to_owned()),
            }
        }
    }

    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Result<String, String> {
        let mut found = String::new();
        while found.len() < most
            && let Some(c) = self.rest.next_if(|c| c.is_digit(radix))
        {
            found.push(c);
        }
        if found.len() < least { Err("a number with too few digits".to_owned()) } else { Ok(found) }
    }

    /// Behind `\p` or `\P`.
    fn property(&mut self, mut negated: bool) -> Result<String, String> {
        if !self.take('{') {
            return Err("`\\p` without braces".to_owned());
        }
        negated ^= self.take('^');
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(c) => name.push(c),
                None => return Err("`\\p{` without an end".to_owned()),
            }
        }
        let plain: String = name.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).collect();
        let plain = plain.to_ascii_lowercase();
        let unknown = name.contains(['=', ':']) || plain.starts_with("is") || plain.starts_with("in");
        if unknown {
            return Err(format!("the property {name:?}"));
        }
        Ok(match posix(&plain) {
            Some(class) if negated => format!("[^{class}]"),
            Some(class) => format!("[{class}]"),
            None if negated => format!(r"\P{{{name}}}"),
            None => format!(r"\p{{{name}}}"),
        })
    }

    /// Behind `[`.
    fn class(&mut self, flags: Flags, out: &mut String) -> Result<(), String> {
        self.depth += 1;
        if self.depth > limits::MAX_PATTERN_DEPTH {
            return Err(format!("more than {} classes in each other", limits::MAX_PATTERN_DEPTH));
        }
        out.push_str(if flags.any_case { "(?i:[" } else { "[" });
        out.push_str(if self.take('^') { "^" } else { "" });
        let mut first = true;
        let mut ranged = None;
        loop {
            let Some(c) = self.rest.next() else { return Err("a class without an end".to_owned()) };
            match c {
                ']' if !first => break,
                '[' if self.rest.peek() == Some(&':') => {
                    ranged = None;
                    out.push_str(&self.bracket()?);
                }
                '[' => {
                    ranged = None;
                    self.class(Flags { any_case: false, ..flags }, out)?;
                }
                '&' if self.take('&') => {
                    ranged = None;
                    out.push_str("&&");
                }
                '-' if ranged.is_some() && self.rest.peek().is_some_and(|&c| c != ']') => {
                    let from = ranged.take().unwrap_or_default();
                    let to = self.range_end()?;
                    if to < from {
                        return Err(format!("the empty range {from:?} to {to:?}"));
                    }
                    out.push('-');
                    push_literal(to, out);
                }
                '\\' => ranged = self.class_escape(flags, out)?,
                c => {
                    ranged = Some(c);
                    if flags.any_case {
                        check_cases(c)?;
                    }
                    push_literal(c, out);
                }
            }
            first = false;
        }
        out.push_str(if flags.any_case { "])" } else { "]" });
        self.depth -= 1;
        Ok(())
    }

    fn range_end(&mut self) -> Result<char, String> {
        let odd = || "a range that ends in a class".to_owned();
        match self.rest.next() {
            Some('[') | None => Err(odd()),
            Some('\\') => {
                let c = self.rest.next().unwrap_or_default();
                self.character(c)?.ok_or_else(odd)
            }
            Some(c) => Ok(c),
        }
    }

    /// Behind `\` in a class: the character, if it is one.
    fn class_escape(&mut self, flags: Flags, out: &mut String) -> Result<Option<char>, String> {
        let Some(c) = self.rest.next() else { return Err("a `\\` at the end".to_owned()) };
        if c == 'b' {
            push_literal('\x08', out);
            return Ok(Some('\x08'));
        }
        if let Some(c) = self.character(c)? {
            if flags.any_case {
                check_cases(c)?;
            }
            push_literal(c, out);
            return Ok(Some(c));
        }
        match c {
            'w' => out.push_str(WORD),
            'W' => out.push_str(&format!("[^{WORD}]")),
            's' | 'S' => out.extend(['\\', c]),
            'd' => out.push_str(r"\p{Nd}"),
            'D' => out.push_str(r"\P{Nd}"),
            'h' => out.push_str("0-9A-Fa-f"),
            'H' => out.push_str("[^0-9A-Fa-f]"),
            'p' | 'P' => out.push_str(&self.property(c == 'P')?),
            other => return Err(format!("`\\{other}` in a class")),
        }
        Ok(None)
    }

    /// Behind `[` of `[:alpha:]`.
    fn bracket(&mut self) -> Result<String, String> {
        self.take(':');
        let negated = self.take('^');
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(char::is_ascii_alphabetic) {
            name.push(c);
        }
        if !self.take_all(":]") {
            return Err("`[:` in a class that names no class".to_owned());
        }
        let class = posix(&name).ok_or_else(|| format!("the class [:{name}:]"))?;
        Ok(format!("[{}{class}]", if negated { "^" } else { "" }))
    }

    fn quantifier_is_next(&self) -> bool {
        match self.rest.clone().next() {
            Some('*' | '+' | '?') => true,
            Some('{') => interval(&mut self.rest.clone()).is_some(),
            _ => false,
        }
    }

    /// A repeat of what was written to `out` from `last` on.
    fn repeat(&mut self, last: (Last, usize), out: &mut String) -> Result<(Last, usize), String> {
        let (what, start) = last;
        match what {
            Last::Item => {}
            Last::Nothing => return Err("a repeat of nothing".to_owned()),
            Last::Anchor => return Err("a repeat of what has no length".to_owned()),
        }
        let before = self.rest.clone();
        let quantifier = match self.rest.next() {
            Some(c @ ('*' | '+' | '?')) => {
                let sign = c.to_string();
                if self.take('+') {
                    out.insert_str(start, "(?>");
                    out.push_str(&sign);
                    out.push(')');
                    return Ok((Last::Item, start));
                }
                if self.take('?') { format!("{sign}?") } else { sign }
            }
            _ => {
                self.rest = before;
                return self.counted(start, out);
            }
        };
        let again = self.quantifier_is_next();
        out.push_str(&quantifier);
        if again {
            wrap("(?:", start, out);
        }
        Ok((Last::Item, start))
    }

    /// `{n,m}` and its kin. `{n}?` is no lazy repeat but an option, and `{m,n}` with `m > n` gives nothing back.
    fn counted(&mut self, start: usize, out: &mut String) -> Result<(Last, usize), String> {
        let Some((low, high)) = interval(&mut self.rest) else { return Err("a `{`".to_owned()) };
        let most = limits::MAX_PATTERN_REPEAT;
        if low.max(high.unwrap_or(0)) > most {
            return Err(format!("more than {most} repeats"));
        }
        match high {
            Some(high) if high < low => {
                out.push_str(&format!("{{{high},{low}}}"));
                wrap("(?>", start, out);
            }
            Some(high) if high == low => {
                out.push_str(&format!("{{{low}}}"));
                if self.quantifier_is_next() {
                    wrap("(?:", start, out);
                }
            }
            _ => {
                let high = high.map_or_else(String::new, |high| high.to_string());
                let lazy = if self.take('?') { "?" } else { "" };
                out.push_str(&format!("{{{low},{high}}}{lazy}"));
                if self.quantifier_is_next() {
                    wrap("(?:", start, out);
                }
            }
        }
        Ok((Last::Item, start))
    }
}

fn wrap(opener: &str, start: usize, out: &mut String) {
    out.insert_str(start, opener);
    out.push(')');
}

/// The bounds of `{n,m}`, `{n,}`, `{,m}` and `{n}`; `None` where the brace stands for itself.
fn interval(rest: &mut Peekable<Chars<'_>>) -> Option<(u32, Option<u32>)> {
    let mut ahead = rest.clone();
    let number = |ahead: &mut Peekable<Chars<'_>>| {
        let mut digits = String::new();
        while let Some(c) = ahead.next_if(char::is_ascii_digit) {
            digits.push(c);
        }
        (!digits.is_empty()).then(|| digits.parse::<u32>().unwrap_or(u32::MAX))
    };
    ahead.next_if_eq(&'{')?;
    let low = number(&mut ahead);
    let bounds = if ahead.next_if_eq(&',').is_some() {
        let high = number(&mut ahead);
        if low.is_none() && high.is_none() {
            return None;
        }
        (low.unwrap_or(0), high)
    } else {
        (low?, low)
    };
    ahead.next_if_eq(&'}')?;
    *rest = ahead;
    Some(bounds)
}

fn scalar(digits: &str, radix: u32) -> Result<char, String> {
    let code = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    code.ok_or_else(|| format!("the character {digits}"))
}

/// Refuses letters that equal several others without regard to case.
fn check_cases(c: char) -> Result<(), String> {
    let several = c.to_uppercase().count() > 1 || c.to_lowercase().count() > 1 || c == '\u{1e9e}';
    if several { Err(format!("{c:?} of any case, which several characters also match")) } else { Ok(()) }
}

fn push_literal(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str(r"\n"),
        '\r' => out.push_str(r"\r"),
        '\t' => out.push_str(r"\t"),
        ' ' | '\'' | '"' | '!' | ',' | '/' | ':' | ';' | '<' | '=' | '>' | '@' | '_' | '`' | '%' => out.push(c),
        c if c.is_ascii_alphanumeric() || !c.is_ascii() && c.is_alphanumeric() => out.push(c),
        c => out.push_str(&format!(r"\x{{{:x}}}", u32::from(c))),
    }
}

/// What is in a class that has a name, to be put into brackets.
fn posix(name: &str) -> Option<&'static str> {
    Some(match name {
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "alpha" => r"\p{Alphabetic}",
        "ascii" => r"\x00-\x7f",
        "blank" => r"\p{Zs}\t",
        "cntrl" => r"\p{Cc}",
        "digit" => r"\p{Nd}",
        "graph" => r"[^\s\p{Cc}\p{Cn}\p{Cs}]",
        "lower" => r"\p{Lowercase}",
        "print" => r"[^\s\p{Cc}\p{Cn}\p{Cs}]\p{Zs}",
        "punct" => r"\p{P}\p{S}",
        "space" => r"\s",
        "upper" => r"\p{Uppercase}",
        "xdigit" => "0-9A-Fa-f",
        "word" => WORD,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::deadline::EncodeDeadline;
    use super::super::pattern::Pattern;

    /// `text` with `#` for each match, as the reference library's `Replace` writes it.
    fn marked(pattern: &str, text: &str) -> String {
        let pattern = Pattern::regex("t", pattern).unwrap();
        let (mut out, mut done) = (String::new(), 0);
        let watch = EncodeDeadline::new(text.len());
        pattern
            .each(text, &watch, |r| {
                out.push_str(&text[done..r.start]);
                out.push('#');
                done = r.end;
            })
            .unwrap();
        out + &text[done..]
    }

    /// Asked of `tokenizers` 0.23.3, whose matcher is Oniguruma.
    #[test]
    fn patterns_mean_what_they_mean_to_oniguruma() {
        let cases = [
            ("^", "a\nb", "#a\n#b"),
            ("^", "a\n", "#a\n"),
            ("$", "a\nb", "a#\nb#"),
            ("$", "a\n", "a#\n#"),
            (r"\w", "a½²", "###"),
            (r"[\w]", "a½²", "#½²"),
            (r"\W", "a½²-", "a½²#"),
            ("a{2}?", "aaa", "#a#"),
            ("a{,2}", "aaaa{,2}", "##{#,#2#}#"),
            ("a{2}+", "aaaaa", "#a"),
            ("a{2}{3}", "aaaaaaa", "#a"),
            ("a{2,1}", "aaaa", "##"),
            ("a{,}", "a{,}aa", "#aa"),
            ("a{x}", "a{x}a", "#a"),
            ("a*+", "aaab", "#b#"),
            ("a?+", "aab", "##b#"),
            ("a{1}{,2}", "aaaa", "##"),
            (r"\p{L}{1,}?", "abc", "###"),
            ("(?i)k", "K\u{212a}", "##"),
            (".", "a\nb\r", "#\n##"),
            ("(?m).", "a\nb", "###"),
            (r"\h", "af g", "## g"),
            (r"\b", "ab cd", "#ab# #cd#"),
            ("[[:alpha:]]", "aé1", "##1"),
            ("[[:punct:]]", "$+,。€", "#####"),
            (r"\R", "\r\n\u{2028}\u{85}", "###"),
            (r"\d", "1٣²", "##²"),
            ("[a-z&&[^b]]", "abc", "#b#"),
            (r"\p{^L}", "a1", "a#"),
            (r"\x{4e00}", "一", "#"),
            (r"\xe3\x81\x82", "あ", "#"),
            (r"(a)\1", "aaa", "#a"),
            (r"[\w]", "a_ⅷⒶ\u{200d}\u{200c}", "####\u{200d}\u{200c}"),
            ("", "ab", "#a#b#"),
            ("a|", "bab", "#b#b#"),
            ("x*", "axb", "#a#b#"),
            ("]", "a]", "a#"),
            ("[]a]", "a]", "##"),
            ("[a-]", "a-", "##"),
            (r"\Qa\E", "QaE", "#"),
            (r"\N", "a\n", "#\n"),
            ("(?x)a b", "ab a b", "# a b"),
            (r"\Z", "ab\n", "ab#\n#"),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(marked(pattern, text), wanted, "{pattern:?} in {text:?}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        for pattern in
            ["{2}", "*", "(?s).", "(?i:ss)", r"\p{IsHan}", r"\p{Script=Han}", r"\G", "(?~ab)", "[a", "(", ")"]
        {
            assert!(Pattern::regex("t", pattern).is_err(), "{pattern:?}");
        }
    }
}
