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

// A histogram over all models: count, mean, and quantiles as Prometheus estimates them, within a bucket in proportion.
export function histogram(samples, name) {
  const buckets = new Map();
  for (const { labels, value } of samples.filter((sample) => sample.name === `${name}_bucket`)) {
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const count = sum(samples, `${name}_count`);
  const quantile = (q) => {
    if (count === 0) return null;
    let [below, before] = [0, 0];
    for (const [bound, total] of sorted) {
      if (total >= q * count) {
        if (bound === Infinity) return below;
        return total > before ? below + (bound - below) * ((q * count - before) / (total - before)) : bound;
      }
      [below, before] = [bound, total];
    }
    return null;
  };
  return { count, mean: count ? sum(samples, `${name}_sum`) / count : null, quantile };
}
