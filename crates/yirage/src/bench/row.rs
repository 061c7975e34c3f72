//! A result, under the names that llama-bench gave such things; what it has no name for stands behind them.

use super::drive::BenchSample;
use super::test::BenchTest;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_engine::Engine;
use yirage_hal::{DeviceInfo, Limit};
use yirage_model::Checkpoint;
use yirage_model::checkpoint::StoredType;
use yirage_plan::Precision;

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RowComparison {
    /// Tokens a second of the old row, its median where it has samples.
    pub(crate) old_ts: f64,
    /// The new row's over the old one's.
    pub(crate) ratio: f64,
    /// Whether no old run is among the new ones: the two ranges have nothing in common. Null with too few runs.
    pub(crate) beyond_noise: Option<bool>,
}

impl RowComparison {
    /// Whether the new row is slower, and not by chance.
    pub(crate) fn is_slower(&self) -> bool {
        self.ratio < 1.0 && self.beyond_noise == Some(true)
    }
}

/// What all rows of an engine have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct BenchSetup {
    build_commit: &'static str,
    build_number: u32,
    cpu_info: String,
    gpu_info: String,
    pub(super) backends: String,
    pub(super) model_filename: String,
    pub(super) model_type: String,
    /// Bytes of all tensors.
    pub(super) model_size: u64,
    pub(super) model_n_params: u64,
    pub(super) n_batch: u32,
    n_ubatch: u32,
    pub(super) n_threads: u64,
    type_k: &'static str,
    type_v: &'static str,
    n_gpu_layers: u32,
    split_mode: &'static str,
    flash_attn: bool,
    devices: String,
    precision: String,
    arch: String,
}

impl BenchSetup {
    /// The facts of a loaded model.
    pub(crate) fn new(
        path: &str,
        checkpoint: &Checkpoint,
        engine: &Engine,
        info: &DeviceInfo,
        precision: Precision,
        batch: u32,
    ) -> BenchSetup {
        let facts = engine.facts();
        let kv = facts.kv.info().name;
        let params = checkpoint.tensors().fold(0u64, |n, t| n.saturating_add(t.elements() as u64));
        let threads = info.facts.iter().find(|(name, _)| *name == "threads").and_then(|(_, n)| n.parse().ok());
        BenchSetup {
            build_commit: env!("CARGO_PKG_VERSION"),
            build_number: 0,
            cpu_info: info.name.clone(),
            gpu_info: String::new(),
            backends: info.backend.to_uppercase(),
            model_filename: path.to_owned(),
            model_type: format!("{} {} {}", facts.architecture, count(params), main_format(checkpoint)),
            model_size: checkpoint.tensors().map(|t| t.range.len() as u64).sum(),
            model_n_params: params,
            n_batch: batch,
            n_ubatch: batch,
            n_threads: threads.unwrap_or(1),
            type_k: kv,
            type_v: kv,
            n_gpu_layers: 0,
            split_mode: "none",
            flash_attn: true,
            devices: format!("{} {}", info.backend, info.ordinal),
            precision: precision.to_string(),
            arch: info.arch.clone(),
        }
    }
}

/// 1.24 B, 270 M.
fn count(n: u64) -> String {
    let n = n as f64;
    if n >= 1e9 { format!("{:.2} B", n / 1e9) } else { format!("{:.2} M", n / 1e6) }
}

/// The format that holds most of the model.
fn main_format(checkpoint: &Checkpoint) -> String {
    let mut sums: Vec<(&StoredType, usize)> = Vec::new();
    for tensor in checkpoint.tensors() {
        match sums.iter_mut().find(|(dtype, _)| **dtype == tensor.dtype) {
            Some((_, bytes)) => *bytes += tensor.range.len(),
            None => sums.push((&tensor.dtype, tensor.range.len())),
        }
    }
    sums.iter().max_by_key(|(_, bytes)| *bytes).map_or_else(String::new, |(dtype, _)| dtype.to_string())
}

/// One test's result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BenchRow {
    #[serde(flatten)]
    pub(super) setup: BenchSetup,
    pub(super) n_prompt: u32,
    pub(super) n_gen: u32,
    pub(super) n_depth: u32,
    pub(super) n_sequences: u32,
    #[serde(skip)]
    pub(super) test: String,
    executor: String,
    test_time: String,
    avg_ns: u64,
    stddev_ns: u64,
    avg_ts: f64,
    pub(super) stddev_ts: f64,
    /// Half of the runs were faster.
    pub(super) median_ts: f64,
    /// Bytes of weights and cache that a step reads on average.
    step_bytes: f64,
    /// Operations that a step computes on average.
    step_ops: f64,
    /// Bytes a second that memory gave just before and after; null where the device does not measure itself.
    memory_bytes_per_second: Option<f64>,
    /// Of the time, what reading those bytes takes at that rate: median over the runs.
    pub(super) share_of_memory: Option<f64>,
    /// Of the time, what those operations take at the measured peaks.
    pub(super) share_of_arithmetic: Option<f64>,
    /// Of the time, what the slower of the two takes, step by step.
    pub(super) share_of_roofline: Option<f64>,
    /// `memory` or `arithmetic`.
    pub(super) bound: Option<&'static str>,
    pub(super) samples_ns: Vec<u64>,
    pub(super) samples_ts: Vec<f64>,
    /// What it is compared with, where there is such a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compare: Option<RowComparison>,
}

impl BenchRow {
    /// The row of these runs, of which there is one at least.
    pub(crate) fn new(setup: &BenchSetup, test: &BenchTest, executor: String, samples: &[BenchSample]) -> BenchRow {
        let ts: Vec<f64> = samples.iter().map(BenchSample::rate).collect();
        let ns: Vec<f64> = samples.iter().map(|s| s.seconds * 1e9).collect();
        let steps = samples.iter().map(|s| s.steps).sum::<usize>().max(1) as f64;
        let total = |of: &dyn Fn(&BenchSample) -> f64| samples.iter().map(of).sum::<f64>();
        let share = |of: &dyn Fn(&BenchSample) -> Option<f64>| {
            let shares: Option<Vec<f64>> = samples.iter().map(of).collect();
            shares.map(|shares| median(&shares))
        };
        let memory = samples.iter().map(|s| s.ceilings.get(Limit::MemoryRead)).collect::<Option<Vec<f64>>>();
        BenchRow {
            setup: setup.clone(),
            n_prompt: test.prompt,
            n_gen: test.generate,
            n_depth: test.depth,
            n_sequences: test.sequences,
            test: test.to_string(),
            executor,
            test_time: now(),
            avg_ns: mean(&ns) as u64,
            stddev_ns: deviation(&ns) as u64,
            avg_ts: mean(&ts),
            stddev_ts: deviation(&ts),
            median_ts: median(&ts),
            step_bytes: total(&|s| s.work.bytes()) / steps,
            step_ops: total(&|s| s.work.ops()) / steps,
            memory_bytes_per_second: memory.map(|m| median(&m)),
            share_of_memory: share(&|s| Some(s.least?.memory / s.seconds)),
            share_of_arithmetic: share(&|s| Some(s.least?.arithmetic / s.seconds)),
            share_of_roofline: share(&|s| Some(s.least?.both / s.seconds)),
            bound: samples.iter().find_map(|s| Some(s.least?.bound())),
            samples_ns: ns.iter().map(|&n| n as u64).collect(),
            samples_ts: ts,
            compare: None,
        }
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Of a sample: divided by one less than there are.
pub(super) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// The one in the middle, or the mean of the two there.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { 0.0 } else { (sorted[n / 2] + sorted[(n - 1) / 2]) / 2.0 }
}

/// The time in UTC as ISO 8601.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    iso(seconds)
}

fn iso(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have the leap day at their end, and months of 153 days in five.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(iso(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(iso(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(iso(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(iso(4_102_444_799), "2099-12-31T23:59:59Z");
    }

    #[test]
    fn statistics() {
        assert_eq!((mean(&[1.0, 3.0]), median(&[3.0, 1.0]), median(&[5.0, 1.0, 2.0])), (2.0, 2.0, 2.0));
        assert_eq!((deviation(&[1.0, 3.0]), deviation(&[7.0])), (std::f64::consts::SQRT_2, 0.0));
        assert_eq!((count(1_240_000_000), count(270_000_000)), ("1.24 B".into(), "270.00 M".into()));
    }
}
