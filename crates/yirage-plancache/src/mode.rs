//! How a call is run.

use std::fmt;
use std::str::FromStr;

/// How a call is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// Every op is a step of its own; the plan is loaded for this call and dropped after it. It is compiled once for its
    /// sizes.
    Native,
    /// Every op is a step of its own; the plan is kept.
    GraphReplay,
    /// Ops are fused; the plan is kept.
    Fusion,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Native, Mode::GraphReplay, Mode::Fusion];

    /// Its name, as InfiniLM's statistics have it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::GraphReplay => "graph_replay",
            Mode::Fusion => "fusion",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;
    fn from_str(s: &str) -> Result<Mode, String> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == s);
        found.ok_or_else(|| format!("`{s}` is no mode: `native`, `graph_replay` or `fusion` wanted"))
    }
}
