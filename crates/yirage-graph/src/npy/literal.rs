//! The Python literal of a header: a dict of a string, a truth value and a tuple of sizes. Nothing else is one.

use super::NpyError;

/// Reads tokens of a literal.
pub(super) struct PyLiteralReader<'a> {
    pub(super) rest: &'a str,
}

/// A value of the dict.
pub(super) enum PyLiteral<'a> {
    Text(&'a str),
    Truth(bool),
    Sizes(Vec<usize>),
    /// A list: structured elements.
    List,
}

fn wrong(what: impl Into<String>) -> NpyError {
    NpyError::Header(what.into())
}

impl<'a> PyLiteralReader<'a> {
    /// Takes `c` if it comes next, behind blanks.
    pub(super) fn accept(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(c) else { return false };
        self.rest = rest;
        true
    }

    pub(super) fn expect(&mut self, c: char) -> Result<(), NpyError> {
        if self.accept(c) { Ok(()) } else { Err(wrong(format!("`{c}` wanted before `{}`", self.ahead()))) }
    }

    /// A quoted text without escapes.
    pub(super) fn text(&mut self) -> Result<&'a str, NpyError> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let body = quote.and_then(|quote| self.rest[1..].split_once(quote));
        let (text, rest) = body.ok_or_else(|| wrong(format!("a text in quotes wanted before `{}`", self.ahead())))?;
        if text.contains('\\') {
            return Err(wrong(format!("`{text}` has an escape")));
        }
        self.rest = rest;
        Ok(text)
    }

    pub(super) fn value(&mut self) -> Result<PyLiteral<'a>, NpyError> {
        self.rest = self.rest.trim_start();
        for (word, truth) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(PyLiteral::Truth(truth));
            }
        }
        match self.rest.chars().next() {
            Some('(') => self.sizes().map(PyLiteral::Sizes),
            Some('[') => Ok(PyLiteral::List),
            _ => self.text().map(PyLiteral::Text),
        }
    }

    fn sizes(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect('(')?;
        let mut sizes = Vec::new();
        while !self.accept(')') {
            self.rest = self.rest.trim_start();
            let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            let size = number.parse().map_err(|_| wrong(format!("a size wanted before `{}`", self.ahead())))?;
            // Python 2 wrote long numbers so.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            sizes.push(size);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }

    /// What comes next, for errors.
    fn ahead(&self) -> String {
        self.rest.chars().take(24).collect()
    }
}
