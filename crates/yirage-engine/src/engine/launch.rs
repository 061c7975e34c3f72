//! Steps on the device: submitted, waited for, and submitted behind one that is not over.

use super::core::Engine;
use super::request_state::RequestedOutputs;
use super::submitted_step::SubmittedStep;
use crate::runner::{GivenRows, HIDDEN, LOGITS};
use crate::sampling::{SampleError, SamplerOutput, SamplingInFlight};
use crate::scheduler::{Batch, LogitsWanted};
use std::time::Instant;
use yirage_hal::{Flight, ResidentOutput};

impl Engine {
    /// Submits a batch and the choice of its tokens. `ids` are its tokens where only the device knows them.
    pub(super) fn launch(&mut self, batch: Batch, ids: Option<ResidentOutput>) -> Result<SubmittedStep, String> {
        let began = Instant::now();
        let reads = self.reads();
        let length = |seq| self.requests.get(&seq).map_or(0, |s| s.length);
        let scales = |seq| self.requests.get(&seq).map(|s| &*s.adapters.row).unwrap_or_default();
        let rows = GivenRows { embedded: &self.embedded, previous_hidden: Vec::new() };
        let model = self.runner.submit(&batch, length, scales, rows, &reads, ids).map_err(|e| e.to_string())?;
        let sampling = self.sample(&batch).map_err(|e| e.to_string())?;
        Ok(SubmittedStep { batch, began, model, sampling })
    }

    /// The outputs of which some request wants rows, or a token that the host chooses.
    fn reads(&self) -> Vec<usize> {
        let any =
            |of: fn(&RequestedOutputs) -> Option<LogitsWanted>| self.requests.values().any(|r| of(&r.wanted).is_some());
        let on_host = self.requests.values().any(|request| request.chain.is_some());
        let logits = (on_host || any(|wanted| wanted.logits)).then_some(LOGITS);
        let hidden = any(|wanted| wanted.hidden).then_some(HIDDEN);
        logits.into_iter().chain(hidden).chain(self.all_hidden()).collect()
    }

    /// The output that is the hidden states of all tokens, where an MTP head reads them: the last.
    pub(super) fn all_hidden(&self) -> Option<usize> {
        self.speculator.reads_hidden().then_some(1 + usize::from(self.options.hidden))
    }

    /// Submits the step behind one that is not over, with the tokens that are still on the device. None where the host has
    /// to see them first, or the device takes one step at a time.
    pub(super) fn launch_ahead(&mut self, before: &SubmittedStep) -> Option<Result<SubmittedStep, String>> {
        let ids = before.sampling.as_ref().map(SamplingInFlight::tokens)?;
        if !self.may_run_ahead() {
            return None;
        }
        let batch = self.scheduler.schedule_ahead()?;
        Some(self.launch(batch, Some(ids)))
    }

    /// Whether nothing that the host does with a token decides about the next one, but its end.
    fn may_run_ahead(&self) -> bool {
        let plain = self.requests.values().all(|request| !request.waits_for_host());
        self.device.in_flight() > 1 && plain && self.speculator.is_off()
    }

    /// Waits for a step: one result for each row of each entry that the device samples.
    pub(super) fn collect(
        &mut self,
        model: Flight,
        sampling: Option<SamplingInFlight>,
    ) -> Result<Vec<Result<SamplerOutput, SampleError>>, String> {
        self.runner.collect(model).map_err(|e| e.to_string())?;
        sampling.map_or(Ok(Vec::new()), |sampling| sampling.wait().map_err(|e| e.to_string()))
    }
}
