//! A run summed up, under the names of vLLM's `bench serve`.

use crate::answer::RequestMetrics;
use crate::run::LoadRun;
use crate::statistics::Statistics;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What is measured of every answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Time to the first token.
    Ttft,
    /// Time per output token behind the first, a mean for each answer.
    Tpot,
    /// Latency between tokens, all gaps of all answers.
    Itl,
    /// From one end to the other.
    E2el,
}

/// What an answer has to keep to so that it counts as good.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Objective {
    /// Of what; not [`Metric::Itl`], which an answer has many of.
    pub metric: Metric,
    /// Milliseconds at most.
    pub milliseconds: f64,
}

/// A run summed up.
#[derive(Clone, Debug)]
pub struct Summary {
    duration: f64,
    completed: usize,
    failed: usize,
    input: usize,
    output: usize,
    good: Option<usize>,
    of: [Statistics; 4],
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 4] = [Metric::Ttft, Metric::Tpot, Metric::Itl, Metric::E2el];

    /// The name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Ttft => "ttft",
            Metric::Tpot => "tpot",
            Metric::Itl => "itl",
            Metric::E2el => "e2el",
        }
    }

    /// What it is, for people.
    pub fn about(self) -> &'static str {
        match self {
            Metric::Ttft => "Time to First Token",
            Metric::Tpot => "Time per Output Token (excl. 1st token)",
            Metric::Itl => "Inter-token Latency",
            Metric::E2el => "End-to-end Latency",
        }
    }

    /// Of one answer, where it is one number.
    fn of(self, seen: &RequestMetrics) -> Option<Duration> {
        match self {
            Metric::Ttft => Some(seen.ttft),
            Metric::Tpot => seen.tpot(),
            Metric::Itl => None,
            Metric::E2el => Some(seen.latency),
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

impl Summary {
    /// Sums a run up. Requests that failed count as failed alone.
    pub fn new(ran: &LoadRun, objectives: &[Objective]) -> Summary {
        let whole: Vec<&RequestMetrics> = ran.requests.iter().filter(|seen| seen.error.is_none()).collect();
        // An answer of one token has no time per token, and keeps to every one.
        let good = |seen: &RequestMetrics| {
            objectives.iter().all(|o| o.metric.of(seen).is_none_or(|is| milliseconds(is) <= o.milliseconds))
        };
        let statistics = |metric| {
            let gaps = |seen: &&RequestMetrics| seen.itl.iter().copied().map(milliseconds).collect::<Vec<f64>>();
            Statistics::new(match metric {
                Metric::Itl => whole.iter().flat_map(gaps).collect(),
                metric => whole.iter().filter_map(|seen| metric.of(seen)).map(milliseconds).collect(),
            })
        };
        Summary {
            duration: ran.duration.as_secs_f64(),
            completed: whole.len(),
            failed: ran.requests.len() - whole.len(),
            input: whole.iter().map(|seen| seen.input_len).sum(),
            output: whole.iter().map(|seen| seen.output_len).sum(),
            good: (!objectives.is_empty()).then(|| whole.iter().filter(|seen| good(seen)).count()),
            of: Metric::ALL.map(statistics),
        }
    }

    /// Answers that came whole.
    pub fn completed(&self) -> usize {
        self.completed
    }

    /// Requests without a whole answer.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Answers a second.
    pub fn request_throughput(&self) -> f64 {
        self.per_second(self.completed)
    }

    /// Answers a second that kept to all objectives; none where there are no objectives.
    pub fn request_goodput(&self) -> Option<f64> {
        self.good.map(|good| self.per_second(good))
    }

    /// Tokens of answers a second.
    pub fn output_throughput(&self) -> f64 {
        self.per_second(self.output)
    }

    /// What is known of a metric, in milliseconds.
    pub fn statistics(&self, metric: Metric) -> &Statistics {
        match metric {
            Metric::Ttft => &self.of[0],
            Metric::Tpot => &self.of[1],
            Metric::Itl => &self.of[2],
            Metric::E2el => &self.of[3],
        }
    }

    fn per_second(&self, count: usize) -> f64 {
        // A run of no time has no requests.
        if self.duration > 0.0 { count as f64 / self.duration } else { 0.0 }
    }

    /// As vLLM writes it, with these metrics and percentiles. Numbers that nothing is known of are 0, as there.
    pub fn json(&self, metrics: &[Metric], percentiles: &[f64]) -> Map<String, Value> {
        let mut out = Map::new();
        let mut set = |name: String, value: Value| drop(out.insert(name, value));
        set("duration".into(), self.duration.into());
        set("completed".into(), self.completed.into());
        set("failed".into(), self.failed.into());
        set("total_input_tokens".into(), self.input.into());
        set("total_output_tokens".into(), self.output.into());
        set("request_throughput".into(), self.request_throughput().into());
        set("request_goodput".into(), self.request_goodput().into());
        set("output_throughput".into(), self.output_throughput().into());
        set("total_token_throughput".into(), self.per_second(self.input + self.output).into());
        for metric in metrics {
            let (name, of) = (metric.name(), self.statistics(*metric));
            set(format!("mean_{name}_ms"), of.mean().unwrap_or(0.0).into());
            set(format!("median_{name}_ms"), of.median().unwrap_or(0.0).into());
            set(format!("std_{name}_ms"), of.deviation().unwrap_or(0.0).into());
            for p in percentiles {
                set(format!("p{p}_{name}_ms"), of.percentile(*p).unwrap_or(0.0).into());
            }
        }
        out
    }

    /// As people read it.
    pub fn lines(&self, metrics: &[Metric], percentiles: &[f64]) -> Vec<String> {
        let count = |name: &str, value: usize| format!("{name:<42}{value:>10}");
        let number = |name: &str, value: f64| format!("{name:<42}{value:>10.2}");
        let mut lines = vec![
            count("Successful requests:", self.completed),
            count("Failed requests:", self.failed),
            number("Benchmark duration (s):", self.duration),
            count("Total input tokens:", self.input),
            count("Total generated tokens:", self.output),
            number("Request throughput (req/s):", self.request_throughput()),
        ];
        lines.extend(self.request_goodput().map(|good| number("Request goodput (req/s):", good)));
        lines.push(number("Output token throughput (tok/s):", self.output_throughput()));
        lines.push(number("Total token throughput (tok/s):", self.per_second(self.input + self.output)));
        for metric in metrics {
            let (name, of) = (metric.name().to_uppercase(), self.statistics(*metric));
            lines.push(format!("{:-^52}", metric.about()));
            let Some((mean, median)) = of.mean().zip(of.median()) else {
                lines.push("nothing was measured".into());
                continue;
            };
            lines.push(number(&format!("Mean {name} (ms):"), mean));
            lines.push(number(&format!("Median {name} (ms):"), median));
            for p in percentiles {
                lines.extend(of.percentile(*p).map(|value| number(&format!("P{p} {name} (ms):"), value)));
            }
        }
        lines
    }

    /// What was seen of each request, as `--save-detailed` writes it.
    pub fn details(ran: &LoadRun) -> Value {
        let seconds = |duration: &Duration| duration.as_secs_f64();
        json!({
            "input_lens": ran.requests.iter().map(|seen| seen.input_len).collect::<Vec<_>>(),
            "output_lens": ran.requests.iter().map(|seen| seen.output_len).collect::<Vec<_>>(),
            "start_times": ran.requests.iter().map(|seen| seconds(&seen.started)).collect::<Vec<_>>(),
            "ttfts": ran.requests.iter().map(|seen| seconds(&seen.ttft)).collect::<Vec<_>>(),
            "itls": ran.requests.iter().map(|seen| seen.itl.iter().map(seconds).collect()).collect::<Vec<Vec<f64>>>(),
            "generated_texts": ran.requests.iter().map(|seen| seen.text.as_str()).collect::<Vec<_>>(),
            "errors": ran.requests.iter().map(|seen| seen.error.as_deref().unwrap_or_default()).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_metrics(ttft: u64, gaps: &[u64], error: bool) -> RequestMetrics {
        let itl: Vec<Duration> = gaps.iter().copied().map(Duration::from_millis).collect();
        let latency = Duration::from_millis(ttft) + itl.iter().sum::<Duration>();
        let error = error.then(|| "broken".to_owned());
        let ttft = Duration::from_millis(ttft);
        RequestMetrics {
            ttft,
            latency,
            output_len: itl.len() + 1,
            input_len: 10,
            itl,
            error,
            ..RequestMetrics::default()
        }
    }

    #[test]
    fn a_run_is_summed_up() {
        let seen = vec![
            request_metrics(100, &[10, 30], false),
            request_metrics(300, &[], false),
            request_metrics(9999, &[5], true),
        ];
        let ran = LoadRun { duration: Duration::from_secs(2), requests: seen };
        let objective = |metric, milliseconds| Objective { metric, milliseconds };
        let sum = Summary::new(&ran, &[objective(Metric::Ttft, 200.0), objective(Metric::Tpot, 20.0)]);
        assert_eq!((sum.completed(), sum.failed(), sum.request_goodput()), (2, 1, Some(0.5)));
        let json = Value::Object(sum.json(&Metric::ALL, &[50.0, 99.9]));
        // By hand: 3 + 1 tokens in 2 s; answers of 140 and 300 ms; one time per token, 20 ms; gaps of 10 and 30 ms.
        for (name, value) in [
            ("output_throughput", 2.0),
            ("total_token_throughput", 12.0),
            ("mean_ttft_ms", 200.0),
            ("p50_e2el_ms", 220.0),
            ("mean_tpot_ms", 20.0),
            ("std_itl_ms", 10.0),
            ("p99.9_itl_ms", 29.98),
        ] {
            assert!((json[name].as_f64().unwrap() - value).abs() < 1e-9, "{name}: {}", json[name]);
        }
        assert_eq!(Summary::new(&ran, &[]).request_goodput(), None);
        assert_eq!(
            Summary::new(&ran, &[objective(Metric::Tpot, 19.0)]).request_goodput(),
            Some(0.5),
            "one token is good"
        );
    }
}
