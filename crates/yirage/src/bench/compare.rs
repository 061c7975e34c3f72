//! Rows of today beside rows of another day, or of another program that writes the same names.

use super::row::{BenchRow, RowComparison, deviation, mean, median};
use crate::failure::CliFailure;
use serde_json::Value;
use std::path::Path;
use yirage_mmap::read_bytes;

/// Largest file that is read.
const MAX_BYTES: u64 = 256 << 20;
/// Runs that a row needs before its lowest and highest say how much it varies.
const ENOUGH: usize = 3;

/// Rows of a file.
pub(crate) struct BaselineFile {
    rows: Vec<BaselineRow>,
}

struct BaselineRow {
    model: String,
    test: [u64; 4],
    threads: u64,
    batch: Option<u64>,
    ts: f64,
    /// Lowest and highest, where they say something.
    range: Option<(f64, f64)>,
}

impl BaselineFile {
    /// Reads the output of `yirage bench` or llama-bench: `-o json` or `-o jsonl`.
    ///
    /// # Errors
    /// [`CliFailure::File`], or [`CliFailure::Other`] naming the file and what is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<BaselineFile, CliFailure> {
        let bytes = read_bytes(path, MAX_BYTES)?;
        BaselineFile::parse(&bytes).map_err(|why| CliFailure::Other(format!("{}: {why}", path.display())))
    }

    fn parse(bytes: &[u8]) -> Result<BaselineFile, String> {
        let values: Vec<Value> = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Array(values)) => values,
            Ok(value) => vec![value],
            Err(whole) => bytes
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.trim_ascii().is_empty())
                .map(serde_json::from_slice)
                .collect::<Result<_, _>>()
                .map_err(|_| {
                    format!("neither JSON nor a JSON object a line, as `bench -o json` and `-o jsonl` write: {whole}")
                })?,
        };
        let rows: Result<Vec<BaselineRow>, String> =
            values.iter().enumerate().map(|(i, v)| old_row(v).map_err(|why| format!("row {i}: {why}"))).collect();
        Ok(BaselineFile { rows: rows? })
    }

    /// The comparison of a row with the old one of the same model, test and threads, if there is one. Of several, the one
    /// with the same size of steps.
    pub(crate) fn compare(&self, row: &BenchRow) -> Option<RowComparison> {
        let test = [row.n_prompt, row.n_gen, row.n_depth, row.n_sequences].map(u64::from);
        let (model, threads) = (file_name(&row.setup.model_filename), row.setup.n_threads);
        let mut same = self.rows.iter().filter(|o| o.model == model && o.test == test && o.threads == threads);
        let first = same.clone().next()?;
        let old = same.find(|o| o.batch == Some(u64::from(row.setup.n_batch))).unwrap_or(first);
        let beyond_noise = range(&row.samples_ts).zip(old.range).map(|(new, old)| new.0 > old.1 || new.1 < old.0);
        Some(RowComparison { old_ts: old.ts, ratio: row.median_ts / old.ts, beyond_noise })
    }
}

fn old_row(value: &Value) -> Result<BaselineRow, String> {
    let text = |name: &str| value[name].as_str().ok_or_else(|| format!("there is no text {name:?}"));
    let number = |name: &str| value[name].as_u64().ok_or_else(|| format!("there is no number {name:?}"));
    let model = file_name(text("model_filename")?).to_owned();
    let samples: Vec<f64> = value["samples_ts"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let ts = if samples.is_empty() { value["avg_ts"].as_f64() } else { Some(median(&samples)) };
    let ts = ts.filter(|ts| ts.is_finite() && *ts > 0.0).ok_or("there is no number \"avg_ts\" above 0")?;
    let spread = value["stddev_ts"].as_f64().filter(|s| samples.is_empty() && *s > 0.0);
    Ok(BaselineRow {
        model,
        test: [
            number("n_prompt")?,
            number("n_gen")?,
            value["n_depth"].as_u64().unwrap_or(0),
            value["n_sequences"].as_u64().unwrap_or(1),
        ],
        threads: number("n_threads")?,
        batch: value["n_batch"].as_u64(),
        ts,
        range: range(&samples).or(spread.map(|s| (ts - 2.0 * s, ts + 2.0 * s))),
    })
}

/// The lowest and highest of enough runs, or where two deviations from the mean would be, whichever is further: few runs
/// rarely show how far they can go.
fn range(samples: &[f64]) -> Option<(f64, f64)> {
    if samples.len() < ENOUGH {
        return None;
    }
    let (mean, wide) = (mean(samples), 2.0 * deviation(samples));
    let low = samples.iter().copied().fold(mean - wide, f64::min);
    let high = samples.iter().copied().fold(mean + wide, f64::max);
    Some((low, high))
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"model_filename":"a/m.gguf","n_prompt":512,"n_gen":0,"n_threads":2,"n_batch":2048,"avg_ts":10.0,
        "stddev_ts":1.0}"#;

    #[test]
    fn arrays_lines_and_single_rows_are_read() {
        let line = ROW.replace('\n', "");
        for text in [format!("[{ROW}, {ROW}]"), format!("{line}\n\n{line}\n"), ROW.to_owned()] {
            let old = BaselineFile::parse(text.as_bytes()).unwrap();
            assert!(old.rows.iter().all(|r| r.model == "m.gguf" && r.test == [512, 0, 0, 1] && r.ts == 10.0));
            assert_eq!(old.rows[0].range, Some((8.0, 12.0)));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases: [(&[u8], &str); 5] = [
            (b"| md |", "neither JSON"),
            (b"GGUF\x03\xff\n\xfe", "neither JSON"),
            (b"[1]", "row 0: there is no text \"model_filename\""),
            (br#"[{"model_filename":"m","n_prompt":1,"n_gen":0,"n_threads":1}]"#, "avg_ts"),
            (br#"{"model_filename":"m","n_prompt":-1,"avg_ts":1}"#, "n_prompt"),
        ];
        for (bytes, part) in cases {
            let why = BaselineFile::parse(bytes).err().unwrap_or_else(|| panic!("{} was read", bytes.escape_ascii()));
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn few_runs_have_no_range() {
        assert_eq!(range(&[1.0, 2.0]), None);
        assert_eq!(range(&[1.0, 2.0, 3.0]), Some((0.0, 4.0)));
        let (low, high) = range(&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 20.0]).unwrap();
        assert!(low < 10.0 && high == 20.0, "{low} {high}");
    }

    #[test]
    fn slower_needs_certainty() {
        let compared = |ratio, beyond_noise| RowComparison { old_ts: 1.0, ratio, beyond_noise };
        assert!(compared(0.9, Some(true)).is_slower());
        for c in [compared(0.9, Some(false)), compared(0.9, None), compared(1.1, Some(true))] {
            assert!(!c.is_slower());
        }
    }
}
