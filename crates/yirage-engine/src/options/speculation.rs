//! Whether and how tokens are guessed.

/// Whether and how an engine guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Speculation {
    /// Drafts of a sequence that one step verifies at most; 0 switches guessing off.
    pub most: u32,
    /// Whether sequences are looked up in themselves.
    pub lookup: bool,
    /// Tokens at a sequence's end that must stand at an earlier place of it before a lookup guesses; fewer than
    /// [`LEAST`](crate::speculate::LEAST) are as many.
    pub ngram: u32,
    /// Whether the layer of the checkpoint that predicts further tokens guesses (multi-token prediction).
    pub mtp: bool,
    /// Who decides how many.
    pub control: SpeculationControl,
}

impl Speculation {
    /// Drafts that fill, with the token before them, one tile of tokens of the CPU's products.
    pub const MOST: u32 = 15;

    /// Prompt lookup under the controller.
    pub fn lookup() -> Speculation {
        Speculation { most: Self::MOST, lookup: true, ..Speculation::default() }
    }

    /// The checkpoint's MTP head under the controller.
    pub fn mtp() -> Speculation {
        Speculation { most: Self::MOST, mtp: true, ..Speculation::default() }
    }

    /// Whether an MTP head is wanted.
    pub(crate) fn wants_mtp_head(&self) -> bool {
        self.mtp && self.most > 0
    }
}

/// Who decides how many guesses a step verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SpeculationControl {
    /// The controller, from measurements.
    #[default]
    Measured,
    /// Always as many as allowed: for measurements and tests of what is computed.
    Most,
}
