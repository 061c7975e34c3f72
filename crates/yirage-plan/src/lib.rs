//! Plans as pure data: target facts, weight plans, memory plans and steps, with text forms that round-trip.
#![forbid(unsafe_code)]
