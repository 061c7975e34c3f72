// The engine as it runs: figures of /metrics, every two seconds while the page is looked at.

import { request } from "./api.js";
import { element } from "./markdown.js";
import { histogram, parse, sum } from "./metrics.js";

const EVERY = 2000;
const KEPT = 90;
const LATENCIES = [
  ["Time to first token", "vllm:time_to_first_token_seconds"],
  ["Between two tokens", "vllm:inter_token_latency_seconds"],
  ["Queue", "vllm:request_queue_time_seconds"],
  ["Prefill", "vllm:request_prefill_time_seconds"],
  ["Decode", "vllm:request_decode_time_seconds"],
  ["Whole answer", "vllm:e2e_request_latency_seconds"],
];

let timer = null;
let before = null;
const charts = new Map();

export function showEngine(visible) {
  clearInterval(timer);
  timer = visible ? setInterval(look, EVERY) : null;
  if (visible) look();
}

async function look() {
  if (document.hidden) return;
  const status = document.getElementById("engine-status");
  try {
    const samples = parse(await (await request("/metrics")).text());
    draw(samples, performance.now());
    // Said once, not every two seconds.
    if (status.textContent !== "") status.textContent = "";
  } catch (error) {
    if (status.textContent !== error.message) status.textContent = error.message;
  }
}

const share = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "none yet");
const seconds = (value) => (value === null ? "–" : value < 1 ? `${(1000 * value).toFixed(1)} ms` : `${value.toFixed(2)} s`);

function draw(samples, now) {
  const total = (name) => sum(samples, name);
  const tokens = total("vllm:generation_tokens_total");
  const prompts = total("vllm:prompt_tokens_total");
  const passed = before ? (now - before.now) / 1000 : 0;
  const rate = (value, name) => (passed > 0 ? Math.max(0, value - before[name]) / passed : 0);
  const usage = samples.filter((sample) => sample.name === "vllm:kv_cache_usage_perc").map((sample) => sample.value);
  const cache = usage.length ? Math.max(...usage) : 0;
  const running = total("vllm:num_requests_running");
  const speed = rate(tokens, "tokens");
  const drafted = total("vllm:spec_decode_num_draft_tokens_total");
  figures([
    ["Sequences that run", running],
    ["Sequences that wait", total("vllm:num_requests_waiting")],
    ["Open requests", total("yirage_open_requests")],
    ["Cache in use", `${(100 * cache).toFixed(1)} %`],
    ["Tokens of answers a second", speed.toFixed(1)],
    ["Tokens of prompts a second", rate(prompts, "prompts").toFixed(1)],
    ["Prompt tokens from the cache", share(total("vllm:prefix_cache_hits_total"), total("vllm:prefix_cache_queries_total"))],
    ["Guesses that were right", share(total("vllm:spec_decode_num_accepted_tokens_total"), drafted)],
    ["Preemptions", total("vllm:num_preemptions_total")],
  ]);
  chart("Tokens of answers a second", speed);
  chart("Sequences that run", running);
  chart("Cache in use, %", 100 * cache);
  before = { now, tokens, prompts };
  document.getElementById("latencies").replaceChildren(...LATENCIES.map(([name, metric]) => {
    const { count, mean, quantile } = histogram(samples, metric);
    const cells = [count, seconds(mean), ...[0.5, 0.95, 0.99].map((q) => seconds(quantile(q)))];
    const head = element("th", name, { scope: "row" });
    return element("tr", [head, ...cells.map((cell) => element("td", String(cell)))]);
  }));
}

function figures(pairs) {
  const list = document.getElementById("figures");
  list.replaceChildren(...pairs.map(([name, value]) => {
    return element("div", [element("dt", name), element("dd", String(value))]);
  }));
}

const SVG = "http://www.w3.org/2000/svg";

// The last three minutes of a value, as a line from zero to its greatest.
function chart(name, value) {
  let of = charts.get(name);
  if (!of) {
    const line = document.createElementNS(SVG, "polyline");
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 100 100");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    svg.append(line);
    const title = element("h3");
    document.getElementById("charts").append(element("div", [title, svg], { class: "chart" }));
    of = { values: [], line, title };
    charts.set(name, of);
  }
  of.values = [...of.values, value].slice(-KEPT);
  const most = Math.max(...of.values, 1e-9);
  const x = (at) => 100 - (of.values.length - 1 - at) * (100 / (KEPT - 1));
  of.line.setAttribute("points", of.values.map((v, at) => `${x(at).toFixed(2)},${(98 - (96 * v) / most).toFixed(2)}`).join(" "));
  of.title.textContent = `${name}: ${value.toFixed(1)}, at most ${most.toFixed(1)} in three minutes`;
}
