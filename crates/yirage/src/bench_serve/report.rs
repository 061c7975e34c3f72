//! What is shown of runs, and what is written: vLLM's JSON.

use super::settings::{ServeBench, pairs};
use crate::bench;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use serde_json::{Map, Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use yirage_loadgen::{ArrivalPattern, LoadRun, Metric, Point, Summary, plot};

/// Where results go.
pub(crate) struct ServeBenchReport<'a> {
    bench: &'a ServeBench,
    console: &'a Console,
    interface: &'static str,
    label: String,
    metadata: Vec<(String, String)>,
    file: Option<ResultFile>,
    points: Vec<Point>,
}

/// Files that results are written to.
pub(crate) struct ResultFile {
    folder: PathBuf,
    /// One name for all runs; else each has its own.
    name: Option<String>,
    detailed: bool,
    append: bool,
}

impl ResultFile {
    /// Reads the options of what is written of so many runs.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for options that ask for a part of what is not written, and for several runs in one file.
    pub(crate) fn resolve(layers: &Layers, runs: usize) -> Result<Option<ResultFile>, CliFailure> {
        let (detailed, append) = (layers.switch("save-detailed")?, layers.switch("append-result")?);
        let saved = layers.switch("save-result")? || append;
        let name = layers.text("result-filename").map(str::to_owned);
        let asked = |name: &&str| layers.raw_value(name).is_some() && (detailed || *name != "save-detailed");
        let unwritten = ["save-detailed", "result-dir", "result-filename"].into_iter().find(asked);
        if let Some(name) = unwritten.filter(|_| !saved) {
            let what = format!("{}: no result is written; add --save-result", layers.label(name));
            return Err(CliFailure::Usage(what));
        }
        if name.is_some() && runs > 1 && !append {
            let label = layers.label("result-filename");
            let what = format!("{label}: there are {runs} runs; add --append-result, or leave it out");
            return Err(CliFailure::Usage(what));
        }
        let folder = PathBuf::from(layers.text("result-dir").unwrap_or("."));
        Ok(saved.then_some(ResultFile { folder, name, detailed, append }))
    }
}

impl<'a> ServeBenchReport<'a> {
    /// A report of no run.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for a metadata that is no pair.
    pub(crate) fn new(
        layers: &Layers,
        file: Option<ResultFile>,
        bench: &'a ServeBench,
        console: &'a Console,
    ) -> Result<ServeBenchReport<'a>, CliFailure> {
        let interface = layers.choice("endpoint-type")?;
        let label = layers.text("label").unwrap_or(interface).to_owned();
        Ok(ServeBenchReport {
            bench,
            console,
            interface,
            label,
            metadata: pairs(layers, "metadata")?,
            file,
            points: Vec::new(),
        })
    }

    /// Shows a run and writes it down.
    ///
    /// # Errors
    /// A file that cannot be written; standard output that takes no more.
    pub(crate) fn run(&mut self, model: &str, load: &ArrivalPattern, ran: &LoadRun) -> Result<(), CliFailure> {
        let summary = Summary::new(ran, &self.bench.objectives);
        let mut result = self.head(model, load);
        result.extend(summary.json(&self.bench.metrics, &self.bench.percentiles));
        if self.console.json {
            self.console.value(&result)?;
        } else {
            self.console.line(&format!("{:=^52}", " Serving Benchmark Result "))?;
            self.console.line(&format!("{:<42}{:>10}", "Load:", name(load)))?;
            let lines = summary.lines(&self.bench.metrics, &self.bench.percentiles);
            lines.iter().try_for_each(|line| self.console.line(line))?;
            self.console.line(&"=".repeat(52))?;
        }
        let errors: Vec<&String> = ran.requests.iter().filter_map(|seen| seen.error.as_ref()).collect();
        if let Some(first) = errors.first() {
            self.console.note(&format!("{} requests failed, the first one so: {first}", errors.len()));
        }
        self.draw(load, &summary);
        self.save(model, load, ran, result)
    }

    fn head(&self, model: &str, load: &ArrivalPattern) -> Map<String, Value> {
        let mut head = Map::new();
        head.insert("date".into(), date().into());
        // Both of its names at vLLM, the old one and the new.
        head.insert("backend".into(), self.interface.into());
        head.insert("endpoint_type".into(), self.interface.into());
        head.insert("label".into(), self.label.as_str().into());
        head.insert("model_id".into(), model.into());
        head.insert("num_prompts".into(), self.bench.prompts.into());
        head.insert("request_rate".into(), load.rate.map_or_else(|| json!("inf"), Value::from));
        head.insert("burstiness".into(), load.burstiness.into());
        head.insert("max_concurrency".into(), load.max_concurrency.into());
        head.extend(self.metadata.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
        head
    }

    fn save(
        &self,
        model: &str,
        load: &ArrivalPattern,
        ran: &LoadRun,
        mut result: Map<String, Value>,
    ) -> Result<(), CliFailure> {
        let Some(file) = &self.file else { return Ok(()) };
        if file.detailed
            && let Value::Object(details) = Summary::details(ran)
        {
            result.extend(details);
        }
        std::fs::create_dir_all(&file.folder).map_err(|e| CliFailure::io(&file.folder, e))?;
        let path = file.folder.join(file.name.clone().unwrap_or_else(|| self.file_name(model, load)));
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(file.append).truncate(!file.append);
        let line = format!("{}\n", Value::Object(result));
        let written = options.open(&path).and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|e| CliFailure::io(&path, e))?;
        self.console.note(&format!("written to {}", path.display()));
        Ok(())
    }

    /// As vLLM calls it.
    fn file_name(&self, model: &str, load: &ArrivalPattern) -> String {
        let rate = load.rate.map_or_else(|| "inf".to_owned(), |rate| rate.to_string());
        let concurrency = load.max_concurrency.map(|n| format!("-concurrency{n}")).unwrap_or_default();
        let model = model.rsplit('/').next().unwrap_or_default();
        let name = format!("{}-{rate}qps{concurrency}-{model}-{}.json", self.label, date());
        name.replace(['/', '\\'], "_")
    }

    fn draw(&mut self, load: &ArrivalPattern, summary: &Summary) {
        let at = name(load);
        let mut point = |panel: String, line: String, value: f64| {
            self.points.push(Point { panel, line, at: at.clone(), value });
        };
        for metric in Metric::ALL.iter().filter(|metric| self.bench.metrics.contains(metric)) {
            let panel = format!("{}, ms", metric.about());
            for p in [50.0].iter().chain(&self.bench.percentiles) {
                if let Some(value) = summary.statistics(*metric).percentile(*p) {
                    point(panel.clone(), format!("p{p}"), value);
                }
            }
        }
        point("Tokens of answers a second".into(), "all".into(), summary.output_throughput());
        point("Requests a second".into(), "completed".into(), summary.request_throughput());
        if let Some(good) = summary.request_goodput() {
            point("Requests a second".into(), "good".into(), good);
        }
    }

    /// Draws what was measured, where that is wanted.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn finish(&self, model: &str) -> Result<(), CliFailure> {
        let Some(path) = &self.bench.plot else { return Ok(()) };
        let picture = plot(&format!("{}: {model}", self.label), &self.points);
        std::fs::write(path, picture).map_err(|e| CliFailure::io(path, e))
    }
}

/// A run in few words.
fn name(load: &ArrivalPattern) -> String {
    let rate = load.rate.map_or_else(|| "inf".to_owned(), |rate| rate.to_string());
    load.max_concurrency.map_or_else(|| format!("{rate}/s"), |n| format!("{rate}/s, {n} open"))
}

/// The time in UTC in vLLM's form: 20260131-235959.
fn date() -> String {
    bench::now().replace(['-', ':', 'Z'], "").replace('T', "-")
}
