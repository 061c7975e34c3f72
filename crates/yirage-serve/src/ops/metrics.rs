//! GET /metrics: figures under vLLM's names, in Prometheus' text form.

use crate::app::App;
use crate::limits::ASK_ENGINE;
use crate::metrics::{ENDS, Histogram};
use crate::models::{ModelEntry, Served};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use yirage_engine::Occupancy;

/// The endpoint.
pub(crate) async fn get(State(app): State<Arc<App>>) -> Response {
    let mut occupancies = Vec::new();
    for entry in app.models.iter() {
        occupancies.push(occupancy(entry).await);
    }
    let mut response = Response::new(Body::from(text(&app, &occupancies)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// What an engine is busy with; none where it is not loaded, or does not say in time.
async fn occupancy(entry: &Arc<ModelEntry>) -> Option<Occupancy> {
    let served = entry.opened()?;
    let asked = tokio::task::spawn_blocking(move || match &*served {
        Served::Generator(generator) => generator.model().between_steps(|engine| engine.occupancy()).ok(),
        Served::Encoder(_) => None,
    });
    tokio::time::timeout(ASK_ENGINE, asked).await.ok()?.ok()?
}

/// A name in a label, as Prometheus wants it quoted.
fn label(name: &str) -> String {
    format!("model_name=\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// A histogram of a model.
type OfModel = fn(&ModelEntry) -> &Histogram;

struct Page<'a> {
    out: String,
    models: Vec<(&'a ModelEntry, String, Option<Occupancy>)>,
}

impl Page<'_> {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string cannot fail, here and below.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge<T: Display>(&mut self, name: &str, help: &str, of: impl Fn(&Occupancy) -> T) {
        self.head(name, "gauge", help);
        for (_, label, occupancy) in &self.models {
            if let Some(occupancy) = occupancy {
                let _ = writeln!(self.out, "{name}{{{label}}} {}", of(occupancy));
            }
        }
    }

    fn counter(&mut self, name: &str, help: &str, of: impl Fn(&ModelEntry) -> &AtomicU64) {
        self.head(name, "counter", help);
        for (entry, label, _) in &self.models {
            let _ = writeln!(self.out, "{name}{{{label}}} {}", of(entry).load(Ordering::Relaxed));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, of: impl Fn(&ModelEntry) -> &Histogram) {
        self.head(name, "histogram", help);
        for (entry, label, _) in &self.models {
            of(entry).write(name, label, &mut self.out);
        }
    }
}

fn text(app: &App, occupancies: &[Option<Occupancy>]) -> String {
    let models = app.models.iter().zip(occupancies);
    let models = models.map(|(entry, occupancy)| (&**entry, label(entry.name()), *occupancy)).collect();
    let mut page = Page { out: String::new(), models };
    page.gauge("vllm:num_requests_running", "Sequences that run.", |of| of.running);
    page.gauge("vllm:num_requests_waiting", "Sequences that wait for a seat or for cache.", |of| of.waiting);
    page.gauge("vllm:kv_cache_usage_perc", "Share of the cache that sequences hold, 0 to 1.", |of| of.cache_usage);
    let name = "yirage_waiting_prompt_tokens";
    page.head(name, "gauge", "Tokens of prompts that are not computed yet.");
    for (entry, label, _) in &page.models {
        let _ = writeln!(page.out, "{name}{{{label}}} {}", entry.metrics.waiting_tokens.load(Ordering::Relaxed));
    }
    page.counter("vllm:prompt_tokens_total", "Tokens of prompts.", |of| &of.metrics.prompt_tokens);
    page.counter("vllm:generation_tokens_total", "Tokens generated.", |of| &of.metrics.generation_tokens);
    page.counter("vllm:prefix_cache_queries_total", "Tokens looked for in the cache.", |of| &of.metrics.prompt_tokens);
    page.counter("vllm:prefix_cache_hits_total", "Tokens found in the cache.", |of| &of.metrics.cached_tokens);
    page.counter("vllm:num_preemptions_total", "Sequences that lost their cache.", |of| &of.metrics.preemptions);
    page.counter("vllm:spec_decode_num_drafts_total", "Steps that verified guesses.", |of| &of.metrics.verifications);
    page.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens guessed.", |of| &of.metrics.drafted);
    page.counter("vllm:spec_decode_num_accepted_tokens_total", "Guesses that were right.", |of| &of.metrics.accepted);
    let chosen = "Tokens that the host chose, for samplers that the device has not.";
    page.counter("yirage_host_sampled_tokens_total", chosen, |of| &of.metrics.host_sampled);
    let taken = "Tokens of prompts that the server of --prefill-server has computed.";
    page.counter("yirage_prefilled_elsewhere_tokens_total", taken, |of| &of.metrics.prefilled_elsewhere);
    let failed = "Prompts that the server of --prefill-server was to compute and did not.";
    page.counter("yirage_prefills_elsewhere_failed_total", failed, |of| &of.metrics.prefills_failed);
    let name = "vllm:request_success_total";
    page.head(name, "counter", "Answers by how they ended.");
    for (entry, label, _) in &page.models {
        for (end, count) in ENDS.iter().zip(&entry.metrics.ends) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(page.out, "{name}{{{label},finished_reason=\"{end}\"}} {count}");
        }
    }
    let figures: [(&str, &str, OfModel); 7] = [
        ("vllm:time_to_first_token_seconds", "From submission to the first token.", |of| &of.metrics.first_token),
        ("vllm:inter_token_latency_seconds", "Between two tokens.", |of| &of.metrics.between_tokens),
        ("vllm:request_time_per_output_token_seconds", "Mean of an answer's gaps.", |of| &of.metrics.per_token),
        ("vllm:request_queue_time_seconds", "From submission until the engine takes it up.", |of| &of.metrics.queue),
        ("vllm:request_prefill_time_seconds", "From then to the first token.", |of| &of.metrics.prefill),
        ("vllm:request_decode_time_seconds", "From the first token to the last.", |of| &of.metrics.decode),
        ("vllm:e2e_request_latency_seconds", "From submission to the last token.", |of| &of.metrics.whole),
    ];
    for (name, help, of) in figures {
        page.histogram(name, help, of);
    }
    page.head("yirage_open_requests", "gauge", "Requests that are open.");
    let _ = writeln!(page.out, "yirage_open_requests {}", app.live.count());
    page.out
}
