//! What is bounded here.

use std::time::Duration;

/// Buffers begin at, and are as long as, multiples of this: no offset of any adapter is bound to a larger one.
pub(crate) const BUFFER_UNIT: u64 = 256;
/// Bindings are as long as multiples of this: an element of four words of the last one is not cut off.
pub(crate) const BINDING_UNIT: u64 = 16;
/// What offsets and lengths of wgpu's own copies are multiples of.
pub(crate) const COPY_UNIT: u64 = wgpu::COPY_BUFFER_ALIGNMENT;
/// Bind groups that are kept. Programs have one a launch; at more, all are forgotten and made again as they are wanted.
pub(crate) const MOST_BIND_GROUPS: usize = 1 << 15;
/// Commands that are recorded before they are submitted, so that the device begins while the host records.
pub(crate) const MOST_RECORDED: u32 = 256;
/// Timestamps of one submission.
pub(crate) const MOST_TIMESTAMPS: u32 = 64;
/// Buffers for downloads that are kept for the next ones.
pub(crate) const MOST_KEPT_STAGING: usize = 16;
/// Errors that nobody waits for are kept for so many signals.
pub(crate) const MOST_KEPT_ERRORS: usize = 1024;
/// Steps that may be on the queue at once: one that runs, and the next one.
pub(crate) const IN_FLIGHT: usize = 2;
/// How long a thread waits for what another one was told of the device and has not passed on yet.
pub(crate) const HANDOVER: Duration = Duration::from_millis(1);
