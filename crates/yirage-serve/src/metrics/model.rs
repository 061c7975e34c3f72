//! What is counted of a model's requests.

use super::histogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use yirage_engine::scheduler::FinishReason;
use yirage_session::FinishedAnswer;

/// Seconds to a first token, of whole answers and of their parts. A wait is a fraction of a millisecond where nobody waits,
/// so they begin far below what a person notices.
const LONG: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.0, 2.0, 4.0, 8.0, 15.0,
    30.0, 60.0, 120.0, 300.0, 600.0,
];
/// Seconds between two tokens.
const SHORT: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0];

/// How answers end, in the words of vLLM's figures.
pub(crate) const ENDS: [&str; 4] = ["stop", "length", "abort", "error"];

/// Figures of one model since the server started.
pub(crate) struct ModelMetrics {
    /// Tokens of prompts that are not computed yet, now.
    pub(crate) waiting_tokens: AtomicU64,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) generation_tokens: AtomicU64,
    pub(crate) preemptions: AtomicU64,
    pub(crate) drafted: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) verifications: AtomicU64,
    pub(crate) host_sampled: AtomicU64,
    /// Tokens of prompts that another server has computed, and prompts that it was to compute and did not.
    pub(crate) prefilled_elsewhere: AtomicU64,
    pub(crate) prefills_failed: AtomicU64,
    pub(crate) ends: [AtomicU64; 4],
    pub(crate) first_token: Histogram,
    pub(crate) between_tokens: Histogram,
    pub(crate) per_token: Histogram,
    pub(crate) queue: Histogram,
    pub(crate) prefill: Histogram,
    pub(crate) decode: Histogram,
    pub(crate) whole: Histogram,
}

impl Default for ModelMetrics {
    fn default() -> ModelMetrics {
        let zero = || AtomicU64::new(0);
        ModelMetrics {
            waiting_tokens: zero(),
            prompt_tokens: zero(),
            cached_tokens: zero(),
            generation_tokens: zero(),
            preemptions: zero(),
            drafted: zero(),
            accepted: zero(),
            verifications: zero(),
            host_sampled: zero(),
            prefilled_elsewhere: zero(),
            prefills_failed: zero(),
            ends: [zero(), zero(), zero(), zero()],
            first_token: Histogram::new(LONG),
            between_tokens: Histogram::new(SHORT),
            per_token: Histogram::new(SHORT),
            queue: Histogram::new(LONG),
            prefill: Histogram::new(LONG),
            decode: Histogram::new(LONG),
            whole: Histogram::new(LONG),
        }
    }
}

impl ModelMetrics {
    /// An answer has ended.
    pub(crate) fn finished(&self, end: &FinishedAnswer) {
        let usage = &end.usage;
        let add = |to: &AtomicU64, n: usize| to.fetch_add(n as u64, Ordering::Relaxed);
        add(&self.prompt_tokens, usage.prompt_tokens);
        add(&self.cached_tokens, usage.cached_tokens);
        add(&self.preemptions, usage.preemptions as usize);
        add(&self.drafted, usage.drafted);
        add(&self.accepted, usage.accepted);
        add(&self.verifications, usage.verifications);
        add(&self.host_sampled, usage.host_sampled);
        self.queue.add(end.queue);
        self.prefill.add(end.prefill);
        self.decode.add(end.decode);
        self.whole.add(end.queue + end.prefill + end.decode);
        if let Some(gaps) = u32::try_from(usage.new_tokens).ok().and_then(|n| n.checked_sub(1)).filter(|n| *n > 0) {
            self.per_token.add(end.decode / gaps);
        }
        let at = match end.reason {
            FinishReason::StopId(_) | FinishReason::StopText => 0,
            FinishReason::Length => 1,
            FinishReason::Cancelled | FinishReason::Deadline => 2,
            FinishReason::NothingAllowed | FinishReason::Error(_) => 3,
        };
        self.ends[at].fetch_add(1, Ordering::Relaxed);
    }

    /// A request ended without an end of its answer.
    pub(crate) fn broke_off(&self, error: bool) {
        self.ends[if error { 3 } else { 2 }].fetch_add(1, Ordering::Relaxed);
    }

    /// How long a request that comes when `open` are open will wait, as far as those before it tell, with `at_once`
    /// running at once. Their own waits do not count: each of them waits for those before it only.
    pub(crate) fn wait(&self, open: usize, at_once: usize) -> Duration {
        let computed = self.prefill.mean().zip(self.decode.mean()).map(|(prefill, decode)| prefill + decode);
        let mean = computed.unwrap_or(Duration::from_secs(1));
        let rounds = (open / at_once.max(1)).max(1);
        clamp_wait(mean.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)))
    }

    /// How long so many tokens of prompts will be computed, as far as those before them tell.
    pub(crate) fn wait_for_tokens(&self, tokens: u64) -> Duration {
        let computed =
            self.prompt_tokens.load(Ordering::Relaxed).saturating_sub(self.cached_tokens.load(Ordering::Relaxed));
        let rate = self.prefill.sum().as_secs_f64() / computed.max(1) as f64;
        clamp_wait(Duration::try_from_secs_f64(rate * tokens as f64).unwrap_or(Duration::MAX))
    }
}

/// A wait as it is told: nobody comes again within a second, or is sent away for longer than ten minutes.
fn clamp_wait(wait: Duration) -> Duration {
    wait.clamp(Duration::from_secs(1), Duration::from_secs(600))
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_engine::scheduler::SequenceUsage;

    #[test]
    fn who_comes_waits_for_what_is_computed_and_not_for_waits() {
        let figures = ModelMetrics::default();
        assert_eq!(figures.wait(1, 1), Duration::from_secs(1));
        let (queue, prefill, decode) =
            (Duration::from_secs(10), Duration::from_millis(1500), Duration::from_millis(500));
        let (reason, usage) = (FinishReason::Length, SequenceUsage::default());
        figures.finished(&FinishedAnswer { reason, stop: None, usage, gain: None, queue, prefill, decode });
        assert_eq!(figures.wait(4, 2), Duration::from_secs(4));
        assert_eq!(figures.whole.mean(), Some(Duration::from_secs(12)));
        assert_eq!(figures.queue.mean(), Some(queue));
        // 30 tokens took 1.5 s, of which 10 were cached.
        figures.prompt_tokens.store(30, Ordering::Relaxed);
        figures.cached_tokens.store(10, Ordering::Relaxed);
        assert_eq!(figures.wait_for_tokens(40), Duration::from_secs(3));
        assert_eq!(figures.wait_for_tokens(u64::MAX), Duration::from_secs(600));
    }
}
