//! Standard output and standard error: results on the one, everything else on the other.

use crate::failure::CliFailure;
use crate::options::Layers;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// Where a command writes.
#[derive(Clone, Copy)]
pub(crate) struct Console {
    /// Results are JSON.
    pub(crate) json: bool,
    quiet: bool,
    verbose: bool,
}

impl Console {
    /// The console that the options ask for. Logging starts here.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for an unknown log level.
    pub(crate) fn new(layers: &Layers) -> Result<Console, CliFailure> {
        let level = match layers.choice("log-level")? {
            "off" => LevelFilter::OFF,
            "error" => LevelFilter::ERROR,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            _ => LevelFilter::WARN,
        };
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).init();
        let (json, quiet, verbose) = (layers.switch("json")?, layers.switch("quiet")?, layers.switch("verbose")?);
        Ok(Console { json, quiet, verbose })
    }

    /// A line for the user beside the result, unless `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            // A note that cannot be shown is no reason to fail.
            let _ = writeln!(io::stderr(), "{}", visible(text));
        }
    }

    /// A line about what was measured or chosen on the way, with `--verbose`.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            self.note(text);
        }
    }

    /// Whether [`Console::detail`] says anything.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose && !self.quiet
    }

    /// Writes a part of a text that is the result itself, and shows it at once: as it is, but for control characters on a
    /// terminal, which would obey them.
    ///
    /// # Errors
    /// [`CliFailure::Closed`] when standard output takes no more.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliFailure> {
        if io::stdout().is_terminal() { write(&visible(text)) } else { write(text) }
    }

    /// Writes a line about something. Names in it may come from files: their control characters are spelt out.
    ///
    /// # Errors
    /// As [`Console::text`].
    pub(crate) fn line(&self, text: &str) -> Result<(), CliFailure> {
        write(&format!("{}\n", visible(text)))
    }

    /// Writes a result as one line of JSON.
    ///
    /// # Errors
    /// As [`Console::text`].
    pub(crate) fn value(&self, value: &impl Serialize) -> Result<(), CliFailure> {
        let text =
            serde_json::to_string(value).map_err(|e| CliFailure::Other(format!("the result is no JSON: {e}")))?;
        self.line(&text)
    }

    /// Progress towards `total` bytes, of which `done` are there already: a bar on a terminal, one line elsewhere,
    /// nothing with `--quiet`.
    pub(crate) fn progress(&self, what: &str, total: u64, done: u64) -> ProgressBar {
        if !io::stderr().is_terminal() && total > PLAIN_LINE_FROM {
            self.note(&format!("{what} ({})", bytes(total)));
        }
        self.bar(what, total, done)
    }

    /// The bar of [`Console::progress`] without the line that stands for it elsewhere.
    pub(crate) fn bar(&self, what: &str, total: u64, done: u64) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar =
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10)).with_position(done);
        let style = ProgressStyle::with_template(BAR);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(visible(what).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

/// A line of progress. The message is cut where the terminal is narrow, so that it stays one line.
const BAR: &str = "{wide_msg} {bar:20} {bytes}/{total_bytes} {eta}";

/// Work on fewer bytes is over before a line about it is read.
const PLAIN_LINE_FROM: u64 = 64 << 20;

fn write(text: &str) -> Result<(), CliFailure> {
    let mut out = standard_output()?.lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliFailure::Closed)
}

/// Standard output, if the process began with one.
///
/// # Errors
/// [`CliFailure::Closed`]: what is written would vanish.
pub(crate) fn standard_output() -> Result<io::Stdout, CliFailure> {
    match yirage_process::standard_output_was_closed() {
        true => Err(CliFailure::Closed(io::Error::other("it was closed before this program began"))),
        false => Ok(io::stdout()),
    }
}

/// A text without the control characters to which a terminal would listen: all but line ends and tabs are spelt out, as
/// JSON spells them.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let speaks = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(speaks) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match speaks(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
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
    use super::{BAR, bytes, visible};
    use indicatif::ProgressStyle;

    #[test]
    fn the_line_of_progress_is_understood() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(visible("a\tb\nc \u{2192} d"), "a\tb\nc \u{2192} d");
        assert_eq!(visible("\u{1b}[2J\r\u{7f}\u{9b}1m\u{0}"), "\\u001b[2J\\u000d\\u007f\\u009b1m\\u0000");
        let json = visible("\"\u{9b}\"").into_owned();
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "\u{9b}", "JSON stays what it was");
    }

    #[test]
    fn bytes_have_a_fitting_unit() {
        assert_eq!([bytes(0), bytes(1023), bytes(1024)], ["0 B", "1023 B", "1.0 KiB"]);
        assert_eq!([bytes(98 << 20), bytes(u64::MAX)], ["98.0 MiB", "16.0 EiB"]);
    }
}
