//! Rows as a table, comma-separated values, or JSON.

use super::row::BenchRow;
use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::options::Layers;
use serde_json::Value;

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BenchFormat {
    /// A table of Markdown.
    Md,
    /// Comma-separated values.
    Csv,
    /// One array.
    Json,
    /// One object a line.
    Jsonl,
}

impl BenchFormat {
    /// What `--output` says; without it, `--json` is one object a line as with every command.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for an unknown word.
    pub(crate) fn resolve(layers: &Layers) -> Result<BenchFormat, CliFailure> {
        Ok(match layers.maybe_choice("output")? {
            Some("csv") => BenchFormat::Csv,
            Some("json") => BenchFormat::Json,
            Some("jsonl") => BenchFormat::Jsonl,
            Some(_) => BenchFormat::Md,
            None if layers.switch("json")? => BenchFormat::Jsonl,
            None => BenchFormat::Md,
        })
    }
}

/// Writes rows as they come.
pub(crate) struct Printer<'a> {
    console: &'a Console,
    output: BenchFormat,
    /// Whether rows have a column for what they are compared with.
    compare: bool,
    rows: Vec<Value>,
    first: bool,
}

impl<'a> Printer<'a> {
    /// A printer that has written nothing yet.
    pub(crate) fn new(console: &'a Console, output: BenchFormat, compare: bool) -> Printer<'a> {
        Printer { console, output, compare, rows: Vec::new(), first: true }
    }

    /// Writes a row; for a JSON array, keeps it.
    ///
    /// # Errors
    /// [`CliFailure::Closed`].
    pub(crate) fn row(&mut self, row: &BenchRow) -> Result<(), CliFailure> {
        let value = || serde_json::to_value(row).map_err(|e| CliFailure::Other(format!("a row is no JSON: {e}")));
        let first = std::mem::take(&mut self.first);
        match self.output {
            BenchFormat::Md => {
                if first {
                    self.head()?;
                }
                self.console.line(&self.line(row))
            }
            BenchFormat::Csv => {
                let value = value()?;
                let fields: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().filter(is_plain).collect();
                if first {
                    self.console.line(&joined(fields.iter().map(|(name, _)| name.to_string())))?;
                }
                self.console.line(&joined(fields.iter().map(|(_, value)| plain(value))))
            }
            BenchFormat::Jsonl => self.console.value(row),
            BenchFormat::Json => {
                self.rows.push(value()?);
                Ok(())
            }
        }
    }

    /// Writes what was kept.
    ///
    /// # Errors
    /// [`CliFailure::Closed`].
    pub(crate) fn finish(self) -> Result<(), CliFailure> {
        match self.output {
            BenchFormat::Json => {
                let text = serde_json::to_string_pretty(&self.rows);
                self.console.line(&text.map_err(|e| CliFailure::Other(format!("the rows are no JSON: {e}")))?)
            }
            _ => Ok(()),
        }
    }

    fn head(&self) -> Result<(), CliFailure> {
        let (more, rule) = if self.compare { (" before | ratio |", " ---: | ---: |") } else { ("", "") };
        self.console
            .line(&format!("| model | size | params | backend | threads | test | t/s | of the limit |{more}"))?;
        self.console.line(&format!("| --- | ---: | ---: | --- | ---: | --- | ---: | ---: |{rule}"))
    }

    fn line(&self, row: &BenchRow) -> String {
        let s = &row.setup;
        let params = s.model_type.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
        let share = match (row.share_of_roofline, row.bound) {
            (Some(share), Some(bound)) => format!("{:.0} % of {bound}", share * 100.0),
            _ => "-".into(),
        };
        let compared = match (&row.compare, self.compare) {
            (_, false) => String::new(),
            (None, true) => " - | - |".into(),
            (Some(c), true) => {
                let sure = match c.beyond_noise {
                    Some(true) => "",
                    Some(false) => " (noise)",
                    None => " (too few runs)",
                };
                format!(" {} | {:.2}{sure} |", rate(c.old_ts), c.ratio)
            }
        };
        format!(
            "| {} | {} | {params} | {} | {} | {} | {} ± {} | {share} |{compared}",
            s.model_type,
            bytes(s.model_size),
            s.backends,
            s.n_threads,
            row.test,
            rate(row.median_ts),
            rate(row.stddev_ts),
        )
    }

    /// How the columns of the table are to be read.
    pub(crate) fn legend(&self) -> &'static str {
        "t/s: median of the runs ± standard deviation; of the limit: the least time that memory and arithmetic as measured \
         beside the runs allow, over the median time"
    }
}

fn rate(ts: f64) -> String {
    format!("{ts:.2}")
}

/// Lists have no place in a table of plain values.
fn is_plain(field: &(&String, &Value)) -> bool {
    !field.1.is_array() && !field.1.is_object()
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One line of CSV: every value in quotes, quotes doubled, as llama-bench writes it.
fn joined(values: impl Iterator<Item = String>) -> String {
    values.map(|v| format!("\"{}\"", v.replace('"', "\"\""))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn values_with_quotes_and_commas_stay_whole() {
        assert_eq!(joined(["a,b".into(), "c \"d\"".into()].into_iter()), "\"a,b\",\"c \"\"d\"\"\"");
    }
}
