//! Raw values to typed ones, with errors that name the option as it was given.

use super::layers::{Layers, default_of, spec};
use super::spec::OptionKind;
use super::table::OPTIONS;
use crate::failure::CliFailure;
use std::fmt::Display;
use std::str::FromStr;

impl Layers {
    /// The text of an option, or its default where that is a value.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.raw_value(name) {
            Some(given) => given.values.first().map(String::as_str),
            None => default_of(name),
        }
    }

    /// All texts of a list.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        self.raw_value(name).map_or(&[], |g| &g.values)
    }

    /// Whether a switch is on; a value that makes no sense counts as off.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.maybe_switch(name).is_ok_and(|v| v == Some(true))
    }

    /// A switch whose default is a value.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] unless it is true, false, 1, 0, on, off, yes or no.
    pub(crate) fn switch(&self, name: &str) -> Result<bool, CliFailure> {
        Ok(self.maybe_switch(name)? == Some(true))
    }

    /// A switch, `None` where nobody said anything and the default is not a value.
    ///
    /// # Errors
    /// As [`Layers::switch`].
    pub(crate) fn maybe_switch(&self, name: &str) -> Result<Option<bool>, CliFailure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Some(true)),
            "false" | "0" | "off" | "no" => Ok(Some(false)),
            _ => Err(self.wrong(name, "true or false")),
        }
    }

    /// A word among those the table allows.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the words.
    pub(crate) fn choice(&self, name: &str) -> Result<&'static str, CliFailure> {
        self.maybe_choice(name).map(|word| word.or(default_of(name)).unwrap_or_default())
    }

    /// A word among those the table allows, `None` where nobody said anything.
    ///
    /// # Errors
    /// As [`Layers::choice`].
    pub(crate) fn maybe_choice(&self, name: &str) -> Result<Option<&'static str>, CliFailure> {
        let OptionKind::Choice(words) = spec(name).kind else { return Ok(None) };
        let Some(given) = self.raw_value(name) else { return Ok(None) };
        let found = words.iter().copied().find(|w| given.values.first().is_some_and(|v| v.eq_ignore_ascii_case(w)));
        found.map(Some).ok_or_else(|| self.wrong(name, words.join(", ")))
    }

    /// A number for which `allowed` holds; `expected` describes those in words.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for anything else.
    pub(crate) fn number<T: FromStr>(
        &self,
        name: &str,
        expected: &str,
        allowed: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, CliFailure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let value = text.trim().parse::<T>().ok().filter(allowed);
        value.map(Some).ok_or_else(|| self.wrong(name, expected))
    }

    /// Token ids, separated by commas or white space, with or without brackets around.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for anything but numbers, and for none at all.
    pub(crate) fn ids(&self, name: &str) -> Result<Option<Vec<u32>>, CliFailure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse_ids(text).map(Some).map_err(|why| CliFailure::Usage(format!("{}: {why}", self.label(name))))
    }

    /// Which of several options that exclude each other holds: the one from the highest layer.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] when two stand in the same layer.
    pub(crate) fn one_of(&self, names: &[&'static str]) -> Result<Option<&'static str>, CliFailure> {
        let rank = |name: &str| self.raw_value(name).map_or(0, |g| g.origin.rank());
        let top = names.iter().map(|n| rank(n)).max().unwrap_or(0);
        let at_top: Vec<&'static str> = names.iter().copied().filter(|n| top > 0 && rank(n) == top).collect();
        match at_top.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [first, second, ..] => {
                let (first, second) = (self.label(first), self.label(second));
                Err(CliFailure::Usage(format!("{first} and {second} exclude each other; give one of them")))
            }
        }
    }

    /// Refuses empty names of files, folders, programs and models: a variable of a script that was never set.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(super) fn refuse_empty_names(&self) -> Result<(), CliFailure> {
        for spec in OPTIONS {
            let OptionKind::Text(word @ ("FILE" | "DIR" | "MODEL" | "PROGRAM" | "NAME")) = spec.kind else { continue };
            if self.raw_value(spec.name).is_some_and(|g| g.values.concat().trim().is_empty()) {
                let label = self.label(spec.name);
                let what = format!("{label}: expected {word}, not \"\"; leave it out for the default");
                return Err(CliFailure::Usage(what));
            }
        }
        Ok(())
    }

    /// The error for a value that makes no sense.
    pub(crate) fn wrong(&self, name: &str, expected: impl Display) -> CliFailure {
        let text = self.text(name).unwrap_or_default();
        CliFailure::Usage(format!("{}: expected {expected}, not {text:?}", self.label(name)))
    }
}

/// Parses `1,2,3` or `1 2 3`, with or without brackets around. Two commas without an id between them are a slip, and
/// what stood there would be missed.
fn parse_ids(text: &str) -> Result<Vec<u32>, String> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if inner.trim().is_empty() {
        return Err("there are no token ids; give at least one, as in 1,2,3".into());
    }
    let mut ids = Vec::new();
    for part in inner.split(',') {
        if part.trim().is_empty() {
            return Err(format!("a comma without a token id beside it, in place {}; write 1,2,3", ids.len()));
        }
        for word in part.split_whitespace() {
            let id = word.parse::<u32>();
            ids.push(id.map_err(|_| format!("{word:?} in place {} is no token id; write 1,2,3", ids.len()))?);
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::super::layers::OptionOrigin;
    use super::*;

    fn with(pairs: &[(&'static str, &str)]) -> Layers {
        let mut layers = Layers::default();
        pairs.iter().for_each(|(n, v)| layers.add(n, OptionOrigin::Flag, vec![v.to_string()]));
        layers
    }

    #[test]
    fn ids_in_every_notation() {
        for text in ["1,2,3", "1 2 3", "[1, 2, 3]", " 1, 2\n3 "] {
            assert_eq!(parse_ids(text).unwrap(), [1, 2, 3], "{text:?}");
        }
        for text in ["", "[]", "[ ]", "1,x", "-1", "4294967296", "1,,2", "1,2,", ",1", "[1", "[[1]]"] {
            assert!(parse_ids(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_that_are_empty_are_told_by_their_layer() {
        let mut layers = with(&[("prompt", "")]);
        assert!(layers.refuse_empty_names().is_ok(), "an empty text is a text");
        layers.add("model", OptionOrigin::File("c.toml".into()), vec![String::new()]);
        let message = layers.refuse_empty_names().unwrap_err().to_string();
        assert_eq!(message, "c.toml: model: expected MODEL, not \"\"; leave it out for the default");
    }

    #[test]
    fn switches_and_choices_in_every_case() {
        assert!(with(&[("raw", "On")]).switch("raw").unwrap());
        assert!(!with(&[]).switch("raw").unwrap());
        assert!(with(&[]).switch("special").unwrap());
        assert_eq!(with(&[]).maybe_switch("parse-special").unwrap(), None);
        assert!(with(&[("raw", "maybe")]).switch("raw").is_err());
        assert_eq!(with(&[("precision", "EXACT")]).choice("precision").unwrap(), "exact");
        assert_eq!(with(&[]).choice("precision").unwrap(), "fast");
        assert_eq!(with(&[]).maybe_choice("kv-type").unwrap(), None);
        let message = with(&[("kv-type", "q8")]).maybe_choice("kv-type").unwrap_err().to_string();
        assert_eq!(message, "--kv-type: expected f32, f16, bf16, q8_0, not \"q8\"");
    }

    #[test]
    fn the_highest_layer_decides_between_alternatives() {
        const NAMES: &[&str] = &["prompt", "prompt-ids"];
        let mut layers = with(&[("prompt", "a")]);
        layers.add("prompt-ids", OptionOrigin::Variable("YIRAGE_PROMPT_IDS".into()), vec!["1".into()]);
        assert_eq!(layers.one_of(NAMES).unwrap(), Some("prompt"));
        assert_eq!(with(&[]).one_of(NAMES).unwrap(), None);
        assert!(with(&[("prompt", "a"), ("prompt-ids", "1")]).one_of(NAMES).is_err());
    }
}
