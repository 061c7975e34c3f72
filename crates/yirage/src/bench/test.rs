//! One thing to measure.

use std::fmt;

/// A prompt, tokens behind it, or both, behind so many cached positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BenchTest {
    /// Tokens of the prompt that is timed.
    pub(crate) prompt: u32,
    /// New tokens that are timed, of each sequence.
    pub(crate) generate: u32,
    /// Positions that are cached before.
    pub(crate) depth: u32,
    /// Sequences that run together.
    pub(crate) sequences: u32,
}

impl BenchTest {
    /// Tokens of all sequences that a run is timed for.
    pub(crate) fn tokens(&self) -> u64 {
        u64::from(self.sequences) * (u64::from(self.prompt) + u64::from(self.generate))
    }

    /// Positions that a sequence has at its end.
    pub(crate) fn positions(&self) -> u64 {
        [self.depth, self.prompt, self.generate].map(u64::from).iter().sum()
    }

    /// The option that most of them come from.
    pub(crate) fn longest_part(&self) -> &'static str {
        match self {
            t if t.depth >= t.prompt.max(t.generate) => "n-depth",
            t if t.prompt > 0 && t.generate > 0 => "pg",
            t if t.prompt > 0 => "n-prompt",
            _ => "n-gen",
        }
    }

    /// Positions that a sequence may need, with steps of `batch` tokens: sequences that begin early run ahead until all
    /// have begun.
    pub(crate) fn context(&self, batch: u32) -> u32 {
        let ahead = self.prefill_steps(batch).saturating_add(2);
        [self.depth, self.prompt, self.generate, ahead].iter().fold(1, |a: u32, b| a.saturating_add(*b))
    }

    /// Steps in which the last sequence gets its first token, at most.
    pub(crate) fn prefill_steps(&self, batch: u32) -> u32 {
        // Sequences that have begun take a place of the step each.
        let room = u64::from(batch.saturating_sub(self.sequences).max(1));
        let tokens = u64::from(self.depth.max(1)) * u64::from(self.sequences);
        u32::try_from(tokens.div_ceil(room) + u64::from(self.sequences)).unwrap_or(u32::MAX)
    }
}

/// As llama-bench calls it: `pp512`, `tg128 @ d2048`, `pp512+tg128`; with ` x 8` for sequences.
impl fmt::Display for BenchTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.prompt, self.generate) {
            (p, 0) => write!(f, "pp{p}")?,
            (0, n) => write!(f, "tg{n}")?,
            (p, n) => write!(f, "pp{p}+tg{n}")?,
        }
        if self.depth > 0 {
            write!(f, " @ d{}", self.depth)?;
        }
        if self.sequences > 1 {
            write!(f, " x {}", self.sequences)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::BenchTest;

    #[test]
    fn names_are_those_people_know() {
        let test = |prompt, generate, depth, sequences| BenchTest { prompt, generate, depth, sequences };
        let named = |t: BenchTest| t.to_string();
        assert_eq!(named(test(512, 0, 0, 1)), "pp512");
        assert_eq!(named(test(0, 128, 2048, 1)), "tg128 @ d2048");
        assert_eq!(named(test(64, 16, 0, 1)), "pp64+tg16");
        assert_eq!(named(test(0, 32, 0, 8)), "tg32 x 8");
        assert_eq!(test(0, 32, 0, 8).tokens(), 256);
    }

    #[test]
    fn a_sequence_that_runs_ahead_has_room() {
        let test = BenchTest { prompt: 0, generate: 10, depth: 100, sequences: 4 };
        // 400 tokens in steps of 60 beside four that run
        assert!(test.prefill_steps(64) >= 7 && test.context(64) >= 100 + 10 + 7);
        let absurd = BenchTest { prompt: u32::MAX, generate: u32::MAX, depth: u32::MAX, sequences: 4096 };
        assert_eq!(absurd.context(1), u32::MAX);
    }
}
