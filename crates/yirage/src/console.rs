//! Standard output and standard error: results on the one, everything else on the other.

use crate::failure::Failure;
use crate::options::Layers;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// Where a command writes.
pub(crate) struct Console {
    /// Results are JSON.
    pub(crate) json: bool,
    quiet: bool,
}

impl Console {
    /// The console that the options ask for. Logging starts here.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an unknown log level.
    pub(crate) fn new(layers: &Layers) -> Result<Console, Failure> {
        let level = match layers.choice("log-level")? {
            "off" => LevelFilter::OFF,
            "error" => LevelFilter::ERROR,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            _ => LevelFilter::WARN,
        };
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).init();
        Ok(Console { json: layers.switch("json")?, quiet: layers.switch("quiet")? })
    }

    /// A line for the user beside the result, unless `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            // A note that cannot be shown is no reason to fail.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Writes a part of a result and shows it at once.
    ///
    /// # Errors
    /// [`Failure::Closed`] when nobody reads any more.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(closed)
    }

    /// Writes a line of a result.
    ///
    /// # Errors
    /// As [`Console::write`].
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.write(&format!("{text}\n"))
    }

    /// Writes a result as one line of JSON.
    ///
    /// # Errors
    /// As [`Console::write`].
    pub(crate) fn value(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(|e| Failure::Other(format!("the result is no JSON: {e}")))?;
        self.line(&text)
    }

    /// Progress towards `total` bytes, of which `done` are there already: a bar on a terminal, one line elsewhere,
    /// nothing with `--quiet`.
    pub(crate) fn progress(&self, what: &str, total: u64, done: u64) -> ProgressBar {
        let terminal = io::stderr().is_terminal();
        if self.quiet || !terminal {
            if total > PLAIN_LINE_FROM {
                self.note(&format!("{what} ({})", bytes(total)));
            }
            return ProgressBar::hidden();
        }
        let bar =
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10)).with_position(done);
        let style = ProgressStyle::with_template(BAR);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

/// A line of progress. The message is cut where the terminal is narrow, so that it stays one line.
const BAR: &str = "{wide_msg} {bar:20} {bytes}/{total_bytes} {eta}";

/// Work on fewer bytes is over before a line about it is read.
const PLAIN_LINE_FROM: u64 = 64 << 20;

fn closed(e: io::Error) -> Failure {
    match e.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Other(format!("standard output: {e}")),
    }
}

/// A number of bytes for people: binary multiples with one digit behind the point.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: &[&str] = &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::{BAR, bytes};
    use indicatif::ProgressStyle;

    #[test]
    fn the_line_of_progress_is_understood() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }

    #[test]
    fn bytes_have_a_fitting_unit() {
        assert_eq!([bytes(0), bytes(1023), bytes(1024)], ["0 B", "1023 B", "1.0 KiB"]);
        assert_eq!([bytes(98 << 20), bytes(u64::MAX)], ["98.0 MiB", "16.0 EiB"]);
    }
}
