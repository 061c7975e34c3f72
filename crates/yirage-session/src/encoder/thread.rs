//! The encoder's thread: computes together what several callers want.

use std::sync::mpsc::{Receiver, SyncSender};
use yirage_engine::{Embedding, Encoder, EncoderInput, EngineError};

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

/// Answers calls until nobody can send one.
pub(super) fn run(mut encoder: Encoder, calls: &Receiver<EncoderCall>) {
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
fn together(encoder: &mut Encoder, mut calls: Vec<EncoderCall>, wanted: EncoderTask) {
    let counts: Vec<usize> = calls.iter().map(|asked| asked.inputs.len()).collect();
    let inputs: Vec<EncoderInput> = calls.iter_mut().flat_map(|asked| asked.inputs.drain(..)).collect();
    let results = match compute(encoder, &inputs, wanted) {
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
    encoder: &mut Encoder,
    inputs: &[EncoderInput],
    counts: &[usize],
    wanted: EncoderTask,
) -> Vec<Result<Vec<Vec<f32>>, EngineError>> {
    let mut rest = inputs;
    let mut alone = |&count: &usize| {
        let (own, others) = rest.split_at(count);
        rest = others;
        compute(encoder, own, wanted)
    };
    counts.iter().map(&mut alone).collect()
}

fn compute(encoder: &mut Encoder, inputs: &[EncoderInput], wanted: EncoderTask) -> Result<Vec<Vec<f32>>, EngineError> {
    match wanted {
        EncoderTask::Embeddings(how) => encoder.embed(inputs, how),
        EncoderTask::Reranking => encoder.score(inputs),
    }
}
