//! What was asked for and means nothing here, or something else: told once each.

use std::fmt;

/// Something that a caller asked for and did not get as asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelNotice {
    /// Grids and blocks of layers.
    Launches,
    /// Workers and schedulers are counted by the device that was opened.
    Workers {
        /// Workers asked for.
        asked: u32,
        /// Workers that the device has.
        has: u32,
    },
    /// Schedulers are no threads of their own here.
    Schedulers,
    /// Activations are f32, whatever was declared.
    Activations,
    /// 8-bit floats are widened.
    Float8,
    /// All ranks run in this process.
    Ranks(u32),
    /// Keys and values of a compiled kernel lie in the engine's blocks; the attached caches are neither read nor written.
    Caches,
    /// A step has too few tokens for all drafts of all requests at once.
    FewDrafts {
        /// Tokens of a step.
        tokens: u32,
        /// Tokens wanted.
        wanted: u32,
    },
    /// Modes other than one pass run the same loop.
    Mode(&'static str),
    /// A saved kernel was made of or for something else, and the validation was skipped.
    NotValidated(String),
    /// A kept plan was not used or could not be written.
    Plan(String),
}

impl fmt::Display for KernelNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelNotice::Launches => f.write_str(
                "grid_dim and block_dim are checked and decide nothing: the compiler cuts tasks for the device",
            ),
            KernelNotice::Workers { asked, has } => {
                write!(f, "num_workers is {asked}, and the device was opened with {has}, which run")
            }
            KernelNotice::Schedulers => {
                f.write_str("num_local_schedulers and num_remote_schedulers decide nothing: tasks wait for counters")
            }
            KernelNotice::Activations => {
                f.write_str("activations are computed and kept as float32, whatever is declared")
            }
            KernelNotice::Float8 => f.write_str(
                "weights of 8-bit floats are widened to float32 when they are loaded, and take four times their bytes; \
                 activations are not rounded to 8 bits",
            ),
            KernelNotice::Ranks(count) => write!(
                f,
                "the {count} ranks run in one process on one device: they compute what they would and are no faster for it"
            ),
            KernelNotice::Caches => f.write_str(
                "keys and values of a compiled kernel lie in blocks of its own, and its attached caches are neither read nor \
                 written: test mode does both",
            ),
            KernelNotice::FewDrafts { tokens, wanted } => write!(
                f,
                "a step has {tokens} tokens, and drafts of all requests at once would take {wanted}: fewer are verified"
            ),
            KernelNotice::Mode(mode) => write!(f, "the mode `{mode}` runs the same loop as `offline`"),
            KernelNotice::NotValidated(what) => write!(f, "the validation was skipped: {what}"),
            KernelNotice::Plan(what) => f.write_str(what),
        }
    }
}

/// Notices, each once.
#[derive(Clone, Default, Debug)]
pub(crate) struct Notices {
    notices: Vec<KernelNotice>,
    taken: usize,
}

impl Notices {
    pub(crate) fn tell(&mut self, notice: KernelNotice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// What was told since the last call.
    pub(crate) fn take(&mut self) -> Vec<KernelNotice> {
        let new = self.notices[self.taken..].to_vec();
        self.taken = self.notices.len();
        new
    }
}
