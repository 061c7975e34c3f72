//! How models mark their thoughts.

/// The marks around thoughts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ThoughtMarks {
    /// What stands before them.
    pub(crate) open: &'static str,
    /// What stands behind them.
    pub(crate) close: &'static str,
    /// Whether what opens them may stand in a template of a model that has none: then both have to be there.
    both: bool,
}

const fn marks(open: &'static str, close: &'static str) -> ThoughtMarks {
    ThoughtMarks { open, close, both: false }
}

/// All that are known. The first one that a template speaks of is its model's.
const KNOWN: &[ThoughtMarks] = &[
    marks("<seed:think>", "</seed:think>"),
    marks("[THINK]", "[/THINK]"),
    // Apertus.
    marks("<|inner_prefix|>", "<|inner_suffix|>"),
    // Command A and R7B.
    marks("<|START_THINKING|>", "<|END_THINKING|>"),
    // Gemma 4.
    marks("<|channel>thought\n", "<channel|>"),
    // Kimi's first models that think.
    marks("◁think▷", "◁/think▷"),
    marks("<think>", "</think>"),
    // EXAONE Deep.
    marks("<thought>", "</thought>"),
    // Granite 3.2 and 3.3's first revision say it in words.
    ThoughtMarks { open: "Here is my thought process:", close: "Here is my response:", both: true },
];

impl ThoughtMarks {
    /// The marks that a template's source speaks of. A template that drops old thoughts speaks of their end alone.
    pub(crate) fn of(source: &str) -> Option<ThoughtMarks> {
        let speaks =
            |marks: &&ThoughtMarks| source.contains(marks.close) && (!marks.both || source.contains(marks.open));
        KNOWN.iter().find(speaks).copied()
    }

    /// Whether a prompt ends with what opens thoughts.
    pub(crate) fn ends(self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.open.trim_end())
    }

    /// Whether a text ends within a thought.
    pub(crate) fn is_open(self, text: &str) -> bool {
        let open = text.rfind(self.open.trim_end());
        open.is_some_and(|open| text.rfind(self.close).is_none_or(|close| close < open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_those_that_a_template_speaks_of() {
        assert_eq!(ThoughtMarks::of("x"), None);
        assert_eq!(ThoughtMarks::of("{{ content.split('</think>')[-1] }}").unwrap().open, "<think>");
        assert_eq!(ThoughtMarks::of("<seed:think> </seed:think>").unwrap().close, "</seed:think>");
        assert_eq!(ThoughtMarks::of("Here is my response:"), None);
    }

    #[test]
    fn a_thought_is_open_where_it_was_opened() {
        let marks = ThoughtMarks::of("</think>").unwrap();
        assert!(marks.ends("user: <think></think>\nassistant:<think>\n"));
        assert!(!marks.ends("assistant:<think>\n\n</think>\n\n"));
        for (text, open) in
            [("a", false), ("<think>a", true), ("<think>a</think>b", false), ("<think>a</think><think>", true)]
        {
            assert_eq!(marks.is_open(text), open, "{text}");
        }
    }
}
