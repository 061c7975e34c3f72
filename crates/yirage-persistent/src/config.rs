//! How a kernel runs, as its constructor is told.

use crate::error::PersistentError;
use crate::limits::MAX_RANKS;
use std::str::FromStr;
use yirage_engine::limits::{BLOCK, MAX_CONTEXT, MAX_DRAFTS, MAX_SEQS, MAX_STEP_TOKENS};
use yirage_engine::sampling::SamplingParams;
use yirage_plan::{ExecutorKind, Precision};

/// Who brings requests and takes their tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KernelMode {
    /// All requests are there; a call runs until they have ended.
    #[default]
    Offline,
    /// Requests come between calls.
    Online,
    /// The same without tokens to the host.
    OnlineNoToken,
    /// A call runs one step.
    OnePass,
    /// Requests go on after their end.
    OnlineMultiTurn,
}

impl KernelMode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            KernelMode::Offline => "offline",
            KernelMode::Online => "online",
            KernelMode::OnlineNoToken => "online_notoken",
            KernelMode::OnePass => "onepass",
            KernelMode::OnlineMultiTurn => "online_multi_turn",
        }
    }
}

impl FromStr for KernelMode {
    type Err = PersistentError;

    fn from_str(name: &str) -> Result<KernelMode, PersistentError> {
        use KernelMode::{Offline, OnePass, Online, OnlineMultiTurn, OnlineNoToken};
        let all = [Offline, Online, OnlineNoToken, OnePass, OnlineMultiTurn];
        all.into_iter().find(|mode| mode.name() == name).ok_or_else(|| PersistentError::Option {
            option: "mode",
            found: name.to_owned(),
            wanted: format!("one of {}", all.map(KernelMode::name).join(", ")),
        })
    }
}

/// Prompt lookup: what followed the last `ngram_size` tokens where they stood before is guessed, `spec_length` tokens of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PromptLookup {
    /// Tokens that must agree.
    pub ngram_size: u32,
    /// Tokens guessed and verified in one step.
    pub spec_length: u32,
}

impl Default for PromptLookup {
    /// Mirage's: 3 and 5.
    fn default() -> PromptLookup {
        PromptLookup { ngram_size: 3, spec_length: 5 }
    }
}

impl PromptLookup {
    pub(crate) fn check(&self) -> Result<(), PersistentError> {
        let ranges = [("ngram_size", self.ngram_size, 2, 64), ("spec_length", self.spec_length, 1, MAX_DRAFTS)];
        for (option, value, least, most) in ranges {
            range(option, value, least, most)?;
        }
        Ok(())
    }
}

/// How a kernel runs.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelConfig {
    /// Who brings requests.
    pub mode: KernelMode,
    /// Ranks that compute together: in one process ([`KernelBuilder::of_ranks`](crate::KernelBuilder::of_ranks)), or each in its
    /// own ([`KernelBuilder::meet`](crate::KernelBuilder::meet)).
    pub world_size: u32,
    /// Which of them this is, from 0.
    pub mpi_rank: u32,
    /// Workers wanted; the device was opened with some already. None does not say.
    pub num_workers: Option<u32>,
    /// Schedulers of a GPU's kernel; told to mean nothing here.
    pub num_local_schedulers: u32,
    /// As `num_local_schedulers`.
    pub num_remote_schedulers: u32,
    /// Positions of a request, prompt and output together.
    pub max_seq_length: u32,
    /// Requests that run at once: slots.
    pub max_num_batched_requests: u32,
    /// Tokens of a step over all requests. Prompts are computed in chunks of what is left of it.
    pub max_num_batched_tokens: u32,
    /// Pages of the cache; none is as many as all slots can use.
    pub max_num_pages: Option<u32>,
    /// Positions of a page: a multiple of 32.
    pub page_size: u32,
    /// The token that ends a request; none runs to the full length.
    pub eos_token_id: Option<u32>,
    /// Prompt lookup; none guesses nothing.
    pub spec_decode: Option<PromptLookup>,
    /// Added to the mean of squares in RMS norms.
    pub rms_norm_eps: f32,
    /// How tokens are chosen where a sampling layer stands at the end; each request draws numbers of its own.
    pub sampling: SamplingParams,
    /// How closely products are computed.
    pub precision: Precision,
    /// The executor of every step; none is chosen by measurement.
    pub executor: Option<ExecutorKind>,
    /// Tasks of each worker whose times are kept; none keeps none.
    pub profiler_spans: Option<usize>,
}

impl Default for KernelConfig {
    /// One slot, steps of 64 tokens, 512 positions, a norm's epsilon of 1e-6 as in Mirage's kernels.
    fn default() -> KernelConfig {
        KernelConfig {
            mode: KernelMode::Offline,
            world_size: 1,
            mpi_rank: 0,
            num_workers: None,
            num_local_schedulers: 0,
            num_remote_schedulers: 0,
            max_seq_length: 512,
            max_num_batched_requests: 1,
            max_num_batched_tokens: 64,
            max_num_pages: None,
            page_size: 64,
            eos_token_id: None,
            spec_decode: None,
            rms_norm_eps: 1e-6,
            sampling: SamplingParams::default(),
            precision: Precision::default(),
            executor: None,
            profiler_spans: None,
        }
    }
}

impl KernelConfig {
    /// Whether a kernel can be built so.
    ///
    /// # Errors
    /// [`PersistentError::Option`] with the first option out of range.
    pub fn check(&self) -> Result<(), PersistentError> {
        range("world_size", self.world_size, 1, MAX_RANKS)?;
        range("mpi_rank", self.mpi_rank, 0, self.world_size - 1)?;
        range("max_seq_length", self.max_seq_length, 1, MAX_CONTEXT)?;
        range("max_num_batched_requests", self.max_num_batched_requests, 1, MAX_SEQS)?;
        // A running request always has a token in a step, so that it is never left out.
        range("max_num_batched_tokens", self.max_num_batched_tokens, self.max_num_batched_requests, MAX_STEP_TOKENS)?;
        range("page_size", self.page_size, BLOCK as u32, MAX_CONTEXT)?;
        if !self.page_size.is_multiple_of(BLOCK as u32) {
            let wanted = format!("a multiple of the cache's block of {BLOCK} positions");
            return Err(PersistentError::Option { option: "page_size", found: self.page_size.to_string(), wanted });
        }
        if let Some(pages) = self.max_num_pages {
            let most = u32::MAX / (self.page_size / BLOCK as u32);
            range("max_num_pages", pages, 1, most)?;
        }
        if let Some(workers) = self.num_workers {
            range("num_workers", workers, 1, u32::MAX)?;
        }
        if !(self.rms_norm_eps >= 0.0 && self.rms_norm_eps <= 1.0) {
            let found = self.rms_norm_eps.to_string();
            return Err(PersistentError::Option {
                option: "rms_norm_eps",
                found,
                wanted: "a number from 0 to 1".into(),
            });
        }
        self.spec_decode.as_ref().map_or(Ok(()), PromptLookup::check)
    }

    /// What a saved kernel depends on, each as a name and a word.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("max_seq_length", self.max_seq_length.to_string()),
            ("max_num_batched_requests", self.max_num_batched_requests.to_string()),
            ("max_num_batched_tokens", self.max_num_batched_tokens.to_string()),
            ("page_size", self.page_size.to_string()),
            ("max_num_pages", self.max_num_pages.map_or("all".into(), |n| n.to_string())),
            ("spec_length", self.spec_decode.map_or(0, |spec| spec.spec_length).to_string()),
            ("rms_norm_eps", self.rms_norm_eps.to_string()),
            ("precision", self.precision.to_string()),
        ]
    }
}

fn range(option: &'static str, value: u32, least: u32, most: u32) -> Result<(), PersistentError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let wanted = format!("a number from {least} to {most} is wanted");
    Err(PersistentError::Option { option, found: value.to_string(), wanted })
}
