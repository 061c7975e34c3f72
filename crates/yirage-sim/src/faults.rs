//! Faults that are ordered.

/// What goes wrong on each device, by how many went well before; nothing where it is none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Faults {
    /// Memory runs out at this allocation, and is there again for the next one.
    pub alloc: Option<u64>,
    /// Submitting this command fails.
    pub submit: Option<u64>,
    /// This kernel fails when it runs.
    pub kernel: Option<u64>,
    /// The device is lost when this command should run.
    pub lost: Option<u64>,
}

/// Counts events up to the one that is to fail.
#[derive(Default, Debug)]
pub(crate) struct Countdown {
    fails: Option<u64>,
    events: u64,
}

impl Countdown {
    pub(crate) fn new(fails: Option<u64>) -> Countdown {
        Countdown { fails, events: 0 }
    }

    /// Whether this event is the one.
    pub(crate) fn strikes(&mut self) -> bool {
        self.events += 1;
        self.fails == Some(self.events - 1)
    }
}
