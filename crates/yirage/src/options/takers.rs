//! Which commands take which options: sets that several options share.

use super::command::CliCommand::{
    self, BackendBenchmark, BackendInfo, BackendOptimize, BackendTest, Bench, BenchGraph, BenchServe, Cache, Chat,
    Convert, Doctor, Embed, Explain, GraphCheck, GraphRun, Imatrix, Inspect, Logits, Perplexity, PlanCheck, PlanRun,
    PlanSave, Pull, Quantize, Rerank, Rm, Route, Run, Scale, Serve, Tokenize, Verify,
};

/// Commands that compute steps of a model.
pub(super) const STEPS: &[CliCommand] =
    &[Run, Chat, Serve, Logits, Perplexity, Embed, Rerank, Bench, Scale, Doctor, Explain];
/// Commands that make plans whose precision is for the user to choose.
pub(super) const PRECISE: &[CliCommand] =
    &[Run, Chat, Serve, Logits, Perplexity, Embed, Rerank, Bench, Scale, Doctor, Explain, PlanSave, Imatrix];
/// Commands that compute with a model that generates text.
pub(super) const COMPUTE: &[CliCommand] = &[Run, Chat, Serve, Logits, Perplexity, Bench, Scale, Doctor, Explain];
/// Commands that compile graphs.
pub(super) const FUSE: &[CliCommand] = &[Run, Chat, Serve, Logits, Perplexity, Bench, Scale, Doctor, Explain, PlanSave];
/// Commands that choose a device.
pub(super) const DEVICE: &[CliCommand] = &[
    Run,
    Chat,
    Serve,
    Logits,
    Perplexity,
    Embed,
    Rerank,
    Bench,
    Scale,
    BenchGraph,
    Doctor,
    Verify,
    Explain,
    BackendInfo,
    BackendOptimize,
    BackendTest,
    GraphRun,
    GraphCheck,
    PlanSave,
    PlanCheck,
    PlanRun,
    Imatrix,
];
/// Commands that open one.
pub(super) const OPEN: &[CliCommand] = &[
    Run,
    Chat,
    Serve,
    Logits,
    Perplexity,
    Embed,
    Rerank,
    Bench,
    Scale,
    BenchGraph,
    Doctor,
    Verify,
    Explain,
    BackendInfo,
    BackendTest,
    BackendBenchmark,
    GraphRun,
    GraphCheck,
    PlanSave,
    PlanCheck,
    PlanRun,
    Imatrix,
];
/// Commands that compute what the user asks for, not what measures best.
pub(super) const ANSWER: &[CliCommand] = &[Run, Chat, Serve, Logits, Perplexity];
/// Commands that compute texts or prompts in pieces.
pub(super) const PIECES: &[CliCommand] = &[Run, Chat, Serve, Logits, Perplexity, Embed, Rerank, Imatrix];
/// Commands that run encoders.
pub(super) const ENCODE: &[CliCommand] = &[Embed, Rerank];
/// Commands that look after what is kept, and those that make it.
pub(super) const KEPT: &[CliCommand] =
    &[Run, Chat, Serve, Logits, Perplexity, Embed, Rerank, Bench, Scale, Doctor, Explain, Cache];
/// Commands that open a model.
pub(super) const MODEL: &[CliCommand] = &[
    Run, Chat, Logits, Perplexity, Embed, Rerank, Tokenize, Inspect, Convert, Imatrix, Quantize, Bench, Scale, Doctor,
    Explain,
];
/// Commands that may fetch a model.
pub(super) const FETCH: &[CliCommand] = &[
    Run,
    Chat,
    Serve,
    Logits,
    Perplexity,
    Embed,
    Rerank,
    Tokenize,
    Inspect,
    Convert,
    Imatrix,
    Quantize,
    Bench,
    Scale,
    Doctor,
    Verify,
    Explain,
    Pull,
    Rm,
    CliCommand::List,
];
/// Commands that compute with several ranks.
pub(super) const RANKS: &[CliCommand] = &[Run, Chat, Serve, Logits, Perplexity, Embed, Rerank, Bench];
/// Commands that several ranks can do for a model that generates text alone: one with experts, or in pipeline stages.
pub(super) const GENERATING_RANKS: &[CliCommand] = &[Run, Chat, Serve, Logits, Perplexity, Bench];
/// The command that measures.
pub(super) const BENCH: &[CliCommand] = &[Bench];
/// Commands that measure steps of sequences behind positions.
pub(super) const DECODES: &[CliCommand] = &[Bench, Scale];
/// Commands that generate text.
pub(super) const GENERATE: &[CliCommand] = &[Run, Chat];
/// Commands that hold conversations and may guess ahead.
pub(super) const TALK: &[CliCommand] = &[Run, Chat, Serve];
/// The command that serves.
pub(super) const SERVE: &[CliCommand] = &[Serve];
/// Commands that listen.
pub(super) const LISTEN: &[CliCommand] = &[Serve, Route];
/// The command that measures a server.
pub(super) const LOAD: &[CliCommand] = &[BenchServe];
/// Commands that take one prompt.
pub(super) const PROMPT: &[CliCommand] = &[Run];
/// The command that writes models with fewer bits.
pub(super) const QUANTIZE: &[CliCommand] = &[Quantize];
/// The command that writes models into another container.
pub(super) const CONVERT: &[CliCommand] = &[Convert];
/// The command that finds how much inputs count.
pub(super) const IMATRIX: &[CliCommand] = &[Imatrix];
/// Commands that write models.
pub(super) const WRITE: &[CliCommand] = &[Convert, Quantize];
/// Commands that write files of models, and what belongs to them.
pub(super) const OVERWRITE: &[CliCommand] = &[Convert, Imatrix, Quantize];
/// Commands that take token ids.
pub(super) const IDS: &[CliCommand] = &[Logits, Perplexity, Tokenize, Imatrix];
