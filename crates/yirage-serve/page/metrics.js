// Prometheus' text form, read, and what histograms say.

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

// All samples: name, labels, value.
export function parse(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : LINE.exec(line);
    if (!found) continue;
    const labels = Object.fromEntries([...(found[2] ?? "").matchAll(LABEL)].map(([, name, value]) => [name, value]));
    samples.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return samples;
}

// The sum over all models.
export function sum(samples, name) {
  return samples.filter((sample) => sample.name === name).reduce((total, sample) => total + sample.value, 0);
}

// A histogram over all models: count, mean, and quantiles as Prometheus estimates them, within a bucket in proportion, but
// never one that the mean forbids.
export function histogram(samples, name) {
  const totals = new Map();
  for (const { labels, value } of samples.filter((sample) => sample.name === `${name}_bucket`)) {
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    totals.set(bound, (totals.get(bound) ?? 0) + value);
  }
  const buckets = [];
  let [low, before] = [0, 0];
  for (const [high, total] of [...totals].sort(([a], [b]) => a - b)) {
    if (total > before) buckets.push({ low, high, before, count: total - before });
    [low, before] = [high, total];
  }
  const count = sum(samples, `${name}_count`);
  const all = sum(samples, `${name}_sum`);
  return { count, mean: count ? all / count : null, quantile: (q) => quantile(buckets, q * count, all) };
}

// The value of a rank among values whose sum is `all`.
function quantile(buckets, rank, all) {
  const mine = buckets.find((bucket) => bucket.before + bucket.count >= rank);
  if (!mine) return null;
  const others = (bound) => buckets.reduce((total, one) => total + (one === mine ? 0 : one.count * one[bound]), 0);
  const width = mine.high - mine.low;
  const estimate = mine.high === Infinity ? mine.low : mine.low + (width * (rank - mine.before)) / mine.count;
  // It is one of the values. Those above it are no less, and those below no more: with all others at an end of their buckets
  // the sum says how far it can be at most and has to be at least. Others of this bucket are at its ends too.
  const below = Math.max(Math.ceil(rank), 1) - 1 - mine.before;
  const above = mine.count - 1 - below;
  const most = (all - others("low") - below * mine.low) / (above + 1);
  const least = (all - others("high") - (above > 0 ? above * mine.high : 0)) / (below + 1);
  const floor = Number.isFinite(least) ? Math.max(least, mine.low) : mine.low;
  return Math.max(floor, Math.min(estimate, most));
}
