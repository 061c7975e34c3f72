//! A run: every request at its time, and what was seen of all.

use crate::answer::{RequestMetrics, measure_request};
use crate::arrivals::{ArrivalPattern, Schedule};
use crate::{LoadError, LoadRequest, LoadTarget};
use hyper::Method;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How often a server that is not there yet is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// Threads on which connections are served, so that measuring takes little from a server on the same machine.
const THREADS: usize = 2;

/// What runs requests.
pub struct LoadRunner {
    runtime: Runtime,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct LoadRun {
    /// From the start to the end of the last answer.
    pub duration: Duration,
    /// What was seen of each sample, in the samples' order.
    pub requests: Vec<RequestMetrics>,
}

impl LoadRunner {
    /// Threads for connections.
    ///
    /// # Errors
    /// [`LoadError::Threads`].
    pub fn new() -> Result<LoadRunner, LoadError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).thread_name("yirage-load").enable_all().build()?;
        Ok(LoadRunner { runtime })
    }

    /// The models that the server names.
    ///
    /// # Errors
    /// [`LoadError::Asked`].
    pub fn models(&self, target: &LoadTarget) -> Result<Vec<String>, LoadError> {
        target.check_headers()?;
        let list = self.runtime.block_on(target.json(Method::GET, "/v1/models", String::new()))?;
        let names = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// Waits until the server names its models, so long at most; without a time it is not asked.
    ///
    /// # Errors
    /// What it said last.
    pub fn wait_until_ready(&self, target: &LoadTarget, time: Duration) -> Result<(), LoadError> {
        let began = Instant::now();
        while !time.is_zero() {
            match self.models(target) {
                Ok(_) => break,
                Err(error) if began.elapsed() >= time => return Err(error),
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
        Ok(())
    }

    /// JSON that the server answers with.
    pub(crate) fn post_json(
        &self,
        target: &LoadTarget,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<serde_json::Value, LoadError> {
        self.runtime.block_on(target.json(Method::POST, path, body.to_string()))
    }

    /// Sends requests that nothing is kept of, all at once.
    ///
    /// # Errors
    /// [`LoadError::WarmUp`] where any failed.
    pub fn warm_up(&self, target: &LoadTarget, samples: &[LoadRequest]) -> Result<(), LoadError> {
        let at_once = ArrivalPattern { rate: None, burstiness: 1.0, max_concurrency: None, seed: 0 };
        let ran = self.run(target, samples, &at_once)?;
        let mut failed = ran.requests.iter().filter_map(|seen| seen.error.as_ref());
        match failed.next() {
            None => Ok(()),
            Some(why) => Err(LoadError::WarmUp { count: 1 + failed.count(), of: ran.requests.len(), why: why.clone() }),
        }
    }

    /// Sends every sample at its time and watches the answers to their ends.
    ///
    /// # Errors
    /// [`LoadError::Load`] and [`LoadError::Header`]. A request that fails is no error: it says so itself.
    pub fn run(
        &self,
        target: &LoadTarget,
        samples: &[LoadRequest],
        load: &ArrivalPattern,
    ) -> Result<LoadRun, LoadError> {
        target.check_headers()?;
        let schedule = Schedule::new(load, samples.len())?;
        let room = load.max_concurrency.map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        let target = Arc::new(target.clone());
        let (duration, seen) = self.runtime.block_on(async {
            let start = Instant::now();
            let mut open = JoinSet::new();
            for (number, (sample, at)) in samples.iter().zip(schedule.times()).enumerate() {
                tokio::time::sleep_until((start + *at).into()).await;
                // In order, and not part of the request. Nobody closes it.
                let permit = match &room {
                    Some(room) => room.clone().acquire_owned().await.ok(),
                    None => None,
                };
                let (target, sample) = (target.clone(), sample.clone());
                open.spawn(async move {
                    let seen = measure_request(&target, &sample, start).await;
                    drop(permit);
                    (number, seen)
                });
            }
            let mut seen: Vec<Option<RequestMetrics>> = vec![None; samples.len()];
            while let Some(watched) = open.join_next().await {
                if let Ok((number, of)) = watched
                    && let Some(place) = seen.get_mut(number)
                {
                    *place = Some(of);
                }
            }
            (start.elapsed(), seen)
        });
        let broken = || RequestMetrics {
            error: Some("the request broke its task; please report this".into()),
            ..RequestMetrics::default()
        };
        Ok(LoadRun { duration, requests: seen.into_iter().map(|seen| seen.unwrap_or_else(broken)).collect() })
    }
}
