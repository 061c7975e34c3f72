//! The encoder's thread: computes together what several callers want.

use std::sync::mpsc::{Receiver, SyncSender};
use yirage_engine::{DecoderEncoder, Embedding, Encoder, EncoderFacts, EncoderInput, EngineError, Notice};

/// Calls that may wait for the thread, and that it computes together at most. Whoever sends more waits.
pub(super) const CALLS: usize = 256;

/// What is wanted of inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EncoderTask {
    Embeddings(Embedding),
    Reranking,
}

/// A call.
pub(super) struct EncoderCall {
    pub(super) inputs: Vec<EncoderInput>,
    pub(super) wanted: EncoderTask,
    pub(super) answer: SyncSender<Result<Vec<Vec<f32>>, EngineError>>,
}

/// What computes: an encoder, or a decoder that is made for vectors or scores.
pub(super) enum EncoderModel {
    Encoder(Box<Encoder>),
    Decoder(Box<DecoderEncoder>),
}

impl EncoderModel {
    pub(super) fn facts(&self) -> &EncoderFacts {
        match self {
            EncoderModel::Encoder(encoder) => encoder.facts(),
            EncoderModel::Decoder(decoder) => decoder.facts(),
        }
    }

    pub(super) fn notices(&mut self) -> Vec<Notice> {
        match self {
            EncoderModel::Encoder(encoder) => encoder.notices(),
            EncoderModel::Decoder(decoder) => decoder.notices(),
        }
    }

    fn compute(&mut self, inputs: &[EncoderInput], wanted: EncoderTask) -> Result<Vec<Vec<f32>>, EngineError> {
        match (self, wanted) {
            (EncoderModel::Encoder(encoder), EncoderTask::Embeddings(how)) => encoder.embed(inputs, how),
            (EncoderModel::Encoder(encoder), EncoderTask::Reranking) => encoder.score(inputs),
            (EncoderModel::Decoder(decoder), EncoderTask::Embeddings(how)) => decoder.embed(inputs, how),
            (EncoderModel::Decoder(decoder), EncoderTask::Reranking) => decoder.score(inputs),
        }
    }
}

/// Answers calls until nobody can send one.
pub(super) fn run(mut encoder: EncoderModel, calls: &Receiver<EncoderCall>) {
    while let Ok(first) = calls.recv() {
        let mut waiting = vec![first];
        waiting.extend(calls.try_iter().take(CALLS - 1));
        while let Some(wanted) = waiting.first().map(|asked| asked.wanted) {
            let (alike, others) = waiting.into_iter().partition(|asked| asked.wanted == wanted);
            together(&mut encoder, alike, wanted);
            waiting = others;
        }
    }
}

/// Computes the inputs of calls that want the same.
fn together(encoder: &mut EncoderModel, mut calls: Vec<EncoderCall>, wanted: EncoderTask) {
    let counts: Vec<usize> = calls.iter().map(|asked| asked.inputs.len()).collect();
    let inputs: Vec<EncoderInput> = calls.iter_mut().flat_map(|asked| asked.inputs.drain(..)).collect();
    let results = match encoder.compute(&inputs, wanted) {
        Ok(rows) => {
            let mut rows = rows.into_iter();
            counts.iter().map(|&count| Ok(rows.by_ref().take(count).collect())).collect()
        }
        Err(error) if calls.len() == 1 => vec![Err(error)],
        // One of them cannot be computed. Each by itself tells which, with its inputs counted from its first.
        Err(_) => each_alone(encoder, &inputs, &counts, wanted),
    };
    for (asked, result) in calls.into_iter().zip(results) {
        // Whoever asked waits for it; if not, nobody needs it.
        let _ = asked.answer.send(result);
    }
}

fn each_alone(
    encoder: &mut EncoderModel,
    inputs: &[EncoderInput],
    counts: &[usize],
    wanted: EncoderTask,
) -> Vec<Result<Vec<Vec<f32>>, EngineError>> {
    let mut rest = inputs;
    let mut alone = |&count: &usize| {
        let (own, others) = rest.split_at(count);
        rest = others;
        encoder.compute(own, wanted)
    };
    counts.iter().map(&mut alone).collect()
}
