//! What ends a filling before the model does: lines that stand less deep than the gap, and time.
//!
//! Editors ask for both as llama.cpp has them: the time counts from the first token, and ends an answer only once a line
//! is whole; a line that is not indented as deep as `n_indent` is no part of the answer.

use std::time::{Duration, Instant};

/// What ends a filling early.
#[derive(Clone, Debug, Default)]
pub(super) struct InfillLimits {
    /// White space that each line but the first begins with.
    pub(super) indent: usize,
    /// Time from the first token on.
    pub(super) time: Option<Duration>,
}

/// A filling on its way.
#[derive(Debug)]
pub(super) struct InfillTracker {
    cut: InfillLimits,
    since: Option<Instant>,
    /// Whether a line has ended.
    ended: bool,
    /// White space at the beginning of the line so far; none where the line has more, or is the first.
    blank: Option<usize>,
}

impl InfillLimits {
    /// A filling that this ends.
    pub(super) fn watch(&self) -> InfillTracker {
        InfillTracker { cut: self.clone(), since: None, ended: false, blank: None }
    }
}

impl InfillTracker {
    /// Takes what came; what is no part of the answer is cut off. Whether the answer ends here.
    pub(super) fn take(&mut self, text: &mut String) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        for (at, c) in text.char_indices() {
            match (c, self.blank) {
                ('\n', _) => (self.ended, self.blank) = (true, Some(0)),
                (' ' | '\t', Some(n)) => self.blank = Some(n.saturating_add(1)),
                (_, Some(n)) if n < self.cut.indent => {
                    text.truncate(at);
                    return true;
                }
                _ => self.blank = None,
            }
        }
        self.ended && self.cut.time.is_some_and(|time| since.elapsed() >= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of an answer that comes in these pieces.
    fn left(cut: &InfillLimits, pieces: &[&str]) -> String {
        let (mut watch, mut all) = (cut.watch(), String::new());
        for piece in pieces {
            let mut text = (*piece).to_owned();
            let ends = watch.take(&mut text);
            all.push_str(&text);
            if ends {
                break;
            }
        }
        all
    }

    #[test]
    fn lines_that_stand_less_deep_are_no_part_of_it() {
        let deep = InfillLimits { indent: 4, time: None };
        assert_eq!(left(&deep, &["a\n    b\n", "\n     c\n  ", "d\n"]), "a\n    b\n\n     c\n  ");
        assert_eq!(left(&deep, &["a", "\n", "b"]), "a\n");
        assert_eq!(left(&deep, &["x\n\t\t\t\ty"]), "x\n\t\t\t\ty");
        assert_eq!(left(&InfillLimits::default(), &["a\nb", "\nc"]), "a\nb\nc");
    }

    #[test]
    fn time_ends_an_answer_behind_a_whole_line() {
        let at_once = InfillLimits { indent: 0, time: Some(Duration::ZERO) };
        assert_eq!(left(&at_once, &["a", "b", "c\nd", "e"]), "abc\nd");
        let later = InfillLimits { indent: 0, time: Some(Duration::from_secs(3600)) };
        assert_eq!(left(&later, &["a\n", "b\n"]), "a\nb\n");
    }
}
