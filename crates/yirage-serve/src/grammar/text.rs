//! Regular expressions and grammars as clients write them: within budgets, and in the words of the library that enforces
//! them.

use super::gbnf::{self, MAX_DEPTH};
use std::borrow::Cow;

/// Bytes of a grammar.
const MAX_BYTES: usize = 64 << 10;

/// Rules of a grammar in Lark, counted by their colons.
const MAX_RULES: usize = 512;

/// Bytes of stack for compiling one.
const STACK: usize = 512 << 20;

/// A regular expression without the anchors of its ends: it is matched as a whole anyway.
pub(super) fn without_anchors(regex: &str) -> &str {
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    match regex.strip_suffix('$') {
        // An escaped one is a sign of the text.
        Some(rest) if rest.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 0 => rest,
        _ => regex,
    }
}

/// A regular expression for a text alone.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || !c.is_ascii() => out.push(c),
            c => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        }
    }
    out
}

/// A regular expression for one of these texts.
///
/// # Errors
/// Texts that are longer, together, than a grammar may be.
pub(super) fn choice(texts: &[String]) -> Result<String, String> {
    let bytes: usize = texts.iter().map(String::len).sum();
    if bytes > MAX_BYTES {
        return Err(format!("its texts have {bytes} bytes; {MAX_BYTES} are taken"));
    }
    let texts: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
    Ok(format!("({})", texts.join("|")))
}

/// A grammar in Lark: the one that is given, or a translation of GBNF.
///
/// # Errors
/// One that is larger than any may be, or makes no sense.
pub(super) fn lark(text: &str) -> Result<Cow<'_, str>, String> {
    check(text)?;
    if text.contains("::=") {
        return gbnf::lark(text).map(Cow::Owned);
    }
    let rules = text.bytes().filter(|b| *b == b':').count();
    if rules > MAX_RULES {
        return Err(format!("it has {rules} colons; {MAX_RULES} are taken"));
    }
    Ok(Cow::Borrowed(text))
}

/// Whether a grammar is within its budgets. Brackets in texts count as well, so some that would do are refused.
///
/// # Errors
/// The budget that it exceeds.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has {} bytes; {MAX_BYTES} are taken", text.len()));
    }
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_DEPTH {
        return Err(format!("{deepest} brackets are open at once; {MAX_DEPTH} are taken"));
    }
    Ok(())
}

/// Runs `f` where functions may call themselves often.
///
/// # Errors
/// What `f` says; no thread.
pub(super) fn with_large_stack<R: Send>(f: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("grammar".into()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, f).map_err(|e| format!("no thread to read it: {e}"))?;
        thread.join().unwrap_or_else(|_| Err("it broke the library that enforces it; please report this".into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_of_the_ends_go() {
        for (regex, without) in
            [("^a+$", "a+"), ("a\\$", "a\\$"), ("a\\\\$", "a\\\\"), ("a|b", "a|b"), ("$", ""), ("^", "")]
        {
            assert_eq!(without_anchors(regex), without);
        }
    }

    #[test]
    fn budgets_are_kept() {
        assert!(lark(&"(".repeat(MAX_DEPTH + 1)).is_err() && lark(&"a".repeat(MAX_BYTES + 1)).is_err());
        assert!(lark(&"a:b\n".repeat(MAX_RULES + 1)).is_err() && lark("start: \"a\"").is_ok());
    }
}
