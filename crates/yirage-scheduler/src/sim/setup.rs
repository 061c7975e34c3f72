//! Random small engines and random requests for them.

use super::super::{LogitsWanted, NewSequence, SchedulerConfig};
use super::job::VOCABULARY;
use super::{Rng, chance, range};
use crate::kv::{CacheGroup, GroupConfig};
use crate::limits::BLOCK;

/// What one simulation runs on.
pub(super) struct SchedSimSetup {
    pub(super) groups: Vec<GroupConfig>,
    pub(super) config: SchedulerConfig,
    pub(super) prefix_cache: bool,
    /// Percent of steps with an arrival, a cancellation, a failure.
    pub(super) arrivals: usize,
    pub(super) cancels: usize,
    pub(super) failures: usize,
    /// Percent of steps in which a sequence has guesses.
    pub(super) drafts: usize,
    /// How many keys and priorities requests have.
    keys: usize,
    pub(super) priorities: usize,
    /// Percent of steps in which the room for prompts beside decodes changes.
    pub(super) limits: usize,
    /// Longest prompt in tokens.
    prompt: usize,
    /// Most new tokens.
    output: usize,
}

impl SchedSimSetup {
    /// Pools of a few blocks and budgets of a few tokens, so that every limit is hit often.
    pub(super) fn random(rng: &mut Rng) -> Self {
        let max_seqs = range(rng, 1, 6) as u32;
        let token_budget = max_seqs + range(rng, 0, 80) as u32;
        let config = SchedulerConfig {
            max_seqs,
            token_budget,
            max_rows: max_seqs + range(rng, 0, 40) as u32,
            prefill_chunk: range(rng, 1, 90) as u32,
            max_prefills: range(rng, 1, 6) as u32,
            max_context: range(rng, 40, 300) as u32,
            max_waiting: range(rng, 1, 12) as u32,
        };
        SchedSimSetup {
            groups: groups(rng),
            config,
            prefix_cache: !chance(rng, 10),
            arrivals: range(rng, 3, 40),
            cancels: if chance(rng, 50) { 3 } else { 0 },
            failures: if chance(rng, 30) { 1 } else { 0 },
            drafts: [0, 30, 90][range(rng, 0, 2)],
            keys: [1, 1, 3][range(rng, 0, 2)],
            priorities: [1, 1, 3][range(rng, 0, 2)],
            limits: [0, 20][range(rng, 0, 1)],
            prompt: range(rng, 1, 220),
            output: range(rng, 1, 200),
        }
    }

    /// A request whose prompt is made of few kinds of blocks, so that prompts often begin alike, and often have equal
    /// blocks after different beginnings.
    pub(super) fn request(&self, rng: &mut Rng) -> NewSequence {
        let length = range(rng, 1, self.prompt);
        let mut prompt = Vec::with_capacity(length);
        while prompt.len() < length {
            let kind = range(rng, 0, 2) as u32;
            prompt.extend((0..BLOCK as u32).map(|at| (kind * 17 + at) % VOCABULARY as u32));
        }
        prompt.truncate(length);
        if chance(rng, 40) {
            let from = range(rng, 0, length - 1);
            prompt[from..].iter_mut().for_each(|token| *token = range(rng, 0, VOCABULARY as usize - 1) as u32);
        }
        NewSequence {
            prompt,
            max_new_tokens: if chance(rng, 10) { None } else { Some(range(rng, 0, self.output) as u32) },
            stop_ids: if chance(rng, 50) { vec![7, 3] } else { Vec::new() },
            logits: if chance(rng, 15) { LogitsWanted::All } else { LogitsWanted::Last },
            cache_salt: if chance(rng, 20) { b"tenant".to_vec() } else { Vec::new() },
            priority: range(rng, 0, self.priorities - 1) as i32 - 1,
            key: range(rng, 1, self.keys) as u64,
        }
    }
}

fn groups(rng: &mut Rng) -> Vec<GroupConfig> {
    let most = if chance(rng, 60) { 11 } else { 26 };
    let full = CacheGroup::Paged { k_width: 8, v_width: 4, window: None, layers: 2 };
    let latent = CacheGroup::Latent { rank: 8, rope: 4, layers: 1 };
    let mut window = || {
        let window = Some(range(rng, 1, 100) as u32);
        CacheGroup::Paged { k_width: 8, v_width: 8, window, layers: 1 }
    };
    let (a, b) = (window(), window());
    let kinds = [vec![full.clone()], vec![a.clone()], vec![full.clone(), a.clone()], vec![latent], vec![a, full, b]];
    let kinds = kinds[range(rng, 0, kinds.len() - 1)].clone();
    kinds.into_iter().map(|group| GroupConfig { group, blocks: range(rng, 4, most) as u32 }).collect()
}
