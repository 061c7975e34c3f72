//! A stream of text cut into pieces as it comes. What may be the beginning of a marker is held back until it is known.

use super::calls::{Call, parse};
use super::family::{CallForm, THINK};

/// A piece of what a model says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// Thought, and not for the user.
    Reasoning(String),
    /// Said.
    Content(String),
    /// A tool is to be called.
    Call(Call),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    /// Before anything was said: thoughts may begin here, and a bare call.
    Start,
    Thinking,
    Saying,
    Calling,
}

/// Cuts one answer.
pub(crate) struct Splitter {
    at: Where,
    thinks: bool,
    calls: Option<CallForm>,
    held: String,
    /// White space between parts is not said.
    trim: bool,
}

impl Splitter {
    /// A splitter for an answer; `within_thought` is whether the prompt ends in an open thought.
    pub(crate) fn new(thinks: bool, within_thought: bool, calls: Option<CallForm>) -> Splitter {
        let at = if thinks && within_thought { Where::Thinking } else { Where::Start };
        Splitter { at, thinks, calls, held: String::new(), trim: thinks && within_thought }
    }

    /// Whether what comes now is thought.
    pub(crate) fn is_thinking(&self) -> bool {
        self.at == Where::Thinking
    }

    /// Takes text, and gives what is certain by now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        while self.advance(&mut pieces) {}
        pieces
    }

    /// What is left at the end.
    pub(crate) fn finish(mut self) -> Vec<Piece> {
        let mut pieces = self.push("");
        let rest = std::mem::take(&mut self.held);
        match self.at {
            Where::Thinking => give(&mut pieces, Piece::Reasoning, rest),
            Where::Calling => match self.calls.and_then(|form| parse(form, &rest)) {
                Some(calls) => pieces.extend(calls.into_iter().map(Piece::Call)),
                // It is no call: the user sees what was written, markers and all.
                None => {
                    let begin = self.calls.map_or("", CallForm::begin);
                    let shown = if rest.starts_with('{') { rest } else { format!("{begin}{rest}") };
                    give(&mut pieces, Piece::Content, shown);
                }
            },
            Where::Start | Where::Saying => give(&mut pieces, Piece::Content, rest),
        }
        pieces
    }

    /// One step; false where more text is needed.
    fn advance(&mut self, pieces: &mut Vec<Piece>) -> bool {
        if self.trim {
            let kept = self.held.trim_start();
            self.held = kept.to_owned();
            if self.held.is_empty() {
                return false;
            }
            self.trim = false;
        }
        match self.at {
            Where::Start => self.start(),
            Where::Thinking => self.until(THINK.1, Where::Saying, Piece::Reasoning, pieces),
            Where::Saying => match self.calls {
                Some(form) => self.until(form.begin(), Where::Calling, Piece::Content, pieces),
                None => {
                    give(pieces, Piece::Content, std::mem::take(&mut self.held));
                    false
                }
            },
            Where::Calling => self.call(pieces),
        }
    }

    /// Decides what the answer begins with.
    fn start(&mut self) -> bool {
        let text = self.held.trim_start();
        let maybe = |marker: &str| marker.starts_with(text) || text.starts_with(marker);
        if self.thinks && maybe(THINK.0) {
            let Some(rest) = text.strip_prefix(THINK.0) else { return false };
            self.held = rest.to_owned();
            (self.at, self.trim) = (Where::Thinking, true);
            return true;
        }
        if self.calls == Some(CallForm::Bare) && maybe("{") {
            if text.is_empty() {
                return false;
            }
            self.at = Where::Calling;
            return true;
        }
        if self.held.is_empty() {
            return false;
        }
        self.at = Where::Saying;
        true
    }

    /// Gives text up to a marker, behind which `next` begins.
    fn until(&mut self, marker: &str, next: Where, piece: fn(String) -> Piece, pieces: &mut Vec<Piece>) -> bool {
        if let Some((before, behind)) = self.held.split_once(marker) {
            let before = if next == Where::Saying { before.trim_end() } else { before };
            give(pieces, piece, before.to_owned());
            self.held = behind.to_owned();
            (self.at, self.trim) = (next, next == Where::Saying);
            return true;
        }
        let mut certain = self.held.len() - overlap(&self.held, marker);
        if next == Where::Saying {
            certain = self.held[..certain].trim_end().len();
        }
        let held = self.held.split_off(certain);
        give(pieces, piece, std::mem::replace(&mut self.held, held));
        false
    }

    fn call(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let Some((form, end)) = self.calls.and_then(|form| Some((form, form.end()?))) else { return false };
        let Some((inside, behind)) = self.held.split_once(end) else { return false };
        match parse(form, inside) {
            Some(calls) => pieces.extend(calls.into_iter().map(Piece::Call)),
            None => give(pieces, Piece::Content, format!("{}{inside}{end}", form.begin())),
        }
        self.held = behind.to_owned();
        (self.at, self.trim) = (Where::Saying, true);
        true
    }
}

fn give(pieces: &mut Vec<Piece>, piece: fn(String) -> Piece, text: String) {
    if !text.is_empty() {
        pieces.push(piece(text));
    }
}

/// Bytes at the end of `text` that may be the beginning of `marker`.
fn overlap(text: &str, marker: &str) -> usize {
    let most = marker.len().saturating_sub(1).min(text.len());
    let fits = |n: &usize| {
        text.is_char_boundary(text.len() - n) && marker.as_bytes().starts_with(&text.as_bytes()[text.len() - n..])
    };
    (1..=most).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pieces, those of one kind that follow each other joined.
    fn split(make: impl Fn() -> Splitter, text: &str) -> Vec<Piece> {
        let joined = |cuts: &[&str]| {
            let mut splitter = make();
            let mut all: Vec<Piece> = cuts.iter().flat_map(|cut| splitter.push(cut)).collect();
            all.extend(splitter.finish());
            all.into_iter().fold(Vec::new(), |mut out: Vec<Piece>, piece| {
                match (out.last_mut(), piece) {
                    (Some(Piece::Content(a)), Piece::Content(b)) | (Some(Piece::Reasoning(a)), Piece::Reasoning(b)) => {
                        a.push_str(&b);
                    }
                    (_, piece) => out.push(piece),
                }
                out
            })
        };
        let whole = joined(&[text]);
        // However the text is cut, the pieces are the same.
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(joined(&letters), whole, "{text:?}");
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(joined(&[&text[..at], &text[at..]]), whole, "{text:?} cut at {at}");
        }
        whole
    }

    fn said(text: &str) -> Piece {
        Piece::Content(text.into())
    }

    fn thought(text: &str) -> Piece {
        Piece::Reasoning(text.into())
    }

    fn call(name: &str, arguments: &str) -> Piece {
        Piece::Call(Call { name: name.into(), arguments: arguments.into() })
    }

    #[test]
    fn thoughts_are_cut_off() {
        let make = || Splitter::new(true, false, None);
        assert_eq!(split(make, "<think>\na b\n</think>\n\nyes ß"), [thought("a b"), said("yes ß")]);
        assert_eq!(split(make, "no thought <think>"), [said("no thought <think>")]);
        assert_eq!(split(make, "<think>never ends"), [thought("never ends")]);
        assert_eq!(split(make, "<thin"), [said("<thin")]);
        assert_eq!(split(|| Splitter::new(true, true, None), "\nopen</think>said"), [thought("open"), said("said")]);
        assert_eq!(split(|| Splitter::new(false, false, None), "<think>a</think>"), [said("<think>a</think>")]);
    }

    #[test]
    fn calls_are_cut_out() {
        let tagged = || Splitter::new(true, false, Some(CallForm::Tagged));
        let one = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";
        let wanted = call("f", "{\"x\":1}");
        assert_eq!(split(tagged, one), std::slice::from_ref(&wanted));
        assert_eq!(split(tagged, &format!("look: {one}\n{one}")), [said("look: "), wanted.clone(), wanted.clone()]);
        assert_eq!(split(tagged, "a <tool_call>b</tool_call>c"), [said("a <tool_call>b</tool_call>c")]);
        assert_eq!(split(tagged, "a <tool_call>b"), [said("a <tool_call>b")]);
        let list = || Splitter::new(false, false, Some(CallForm::List));
        let wanted = [wanted];
        assert_eq!(split(list, "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{\"x\":1}}]"), wanted);
        let bare = || Splitter::new(false, false, Some(CallForm::Bare));
        assert_eq!(split(bare, "{\"name\":\"f\",\"parameters\":{\"x\":1}}"), wanted);
        assert_eq!(split(bare, "<|python_tag|>{\"name\":\"f\",\"parameters\":{\"x\":1}}"), wanted);
        assert_eq!(split(bare, "{ not a call"), [said("{ not a call")]);
        assert_eq!(split(bare, "plain"), [said("plain")]);
    }
}
