//! A run: every request at its time, and what was seen of all.

use crate::answer::{Seen, watch};
use crate::arrivals::{Load, Schedule};
use crate::{LoadError, Sample, Target};
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
pub struct Run {
    runtime: Runtime,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Ran {
    /// From the start to the end of the last answer.
    pub duration: Duration,
    /// What was seen of each sample, in the samples' order.
    pub seen: Vec<Seen>,
}

impl Run {
    /// Threads for connections.
    ///
    /// # Errors
    /// [`LoadError::Threads`].
    pub fn new() -> Result<Run, LoadError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).thread_name("yirage-load").enable_all().build()?;
        Ok(Run { runtime })
    }

    /// The models that the server names.
    ///
    /// # Errors
    /// [`LoadError::Asked`].
    pub fn models(&self, target: &Target) -> Result<Vec<String>, LoadError> {
        target.check_headers()?;
        let list = self.runtime.block_on(target.json(Method::GET, "/v1/models", String::new()))?;
        let names = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// Waits until the server names its models, so long at most; without a time it is not asked.
    ///
    /// # Errors
    /// What it said last.
    pub fn wait_until_ready(&self, target: &Target, time: Duration) -> Result<(), LoadError> {
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
    pub(crate) fn asked(
        &self,
        target: &Target,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<serde_json::Value, LoadError> {
        self.runtime.block_on(target.json(Method::POST, path, body.to_string()))
    }

    /// Sends requests that nothing is kept of, all at once.
    ///
    /// # Errors
    /// [`LoadError::WarmUp`] where any failed.
    pub fn warm_up(&self, target: &Target, samples: &[Sample]) -> Result<(), LoadError> {
        let at_once = Load { rate: None, burstiness: 1.0, max_concurrency: None, seed: 0 };
        let ran = self.run(target, samples, &at_once)?;
        let mut failed = ran.seen.iter().filter_map(|seen| seen.error.as_ref());
        match failed.next() {
            None => Ok(()),
            Some(why) => Err(LoadError::WarmUp { count: 1 + failed.count(), of: ran.seen.len(), why: why.clone() }),
        }
    }

    /// Sends every sample at its time and watches the answers to their ends.
    ///
    /// # Errors
    /// [`LoadError::Load`] and [`LoadError::Header`]. A request that fails is no error: it says so itself.
    pub fn run(&self, target: &Target, samples: &[Sample], load: &Load) -> Result<Ran, LoadError> {
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
                    let seen = watch(&target, &sample, start).await;
                    drop(permit);
                    (number, seen)
                });
            }
            let mut seen: Vec<Option<Seen>> = vec![None; samples.len()];
            while let Some(watched) = open.join_next().await {
                if let Ok((number, of)) = watched
                    && let Some(place) = seen.get_mut(number)
                {
                    *place = Some(of);
                }
            }
            (start.elapsed(), seen)
        });
        let broken =
            || Seen { error: Some("the request broke its task; please report this".into()), ..Seen::default() };
        Ok(Ran { duration, seen: seen.into_iter().map(|seen| seen.unwrap_or_else(broken)).collect() })
    }
}
