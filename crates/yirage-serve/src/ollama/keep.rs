//! `keep_alive`: how long a model stays loaded behind a request.

use crate::error::ApiError;
use crate::fields::Fields;
use crate::models::KeepAlive;
use serde_json::Value;
use std::time::Duration;

/// Seconds from which on a time is for ever.
const FOREVER: f64 = 1e9;

/// How long the model is to stay: seconds, or a time as Go writes it (`5m`, `1h30m`); below zero for ever.
///
/// # Errors
/// What is no time.
pub(super) fn keep(fields: &mut Fields) -> Result<Option<KeepAlive>, ApiError> {
    let seconds = match fields.take("keep_alive") {
        None => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => seconds(&text),
        Some(_) => None,
    };
    let expected = "expected a number of seconds or a time such as 5m";
    let seconds = seconds.ok_or_else(|| fields.error("keep_alive", expected))?;
    Ok(Some(if (0.0..FOREVER).contains(&seconds) {
        KeepAlive::For(Duration::from_secs_f64(seconds))
    } else {
        KeepAlive::Forever
    }))
}

fn seconds(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(number).filter(|number| number.is_finite());
    }
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let mut all = 0.0;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(unit);
        let length = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(length);
        let factor = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        all += number.parse::<f64>().ok()? * factor;
        rest = behind;
    }
    Some(sign * all).filter(|all| all.is_finite() && !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_go_writes_them() {
        for (text, wanted) in [
            ("5m", Some(300.0)),
            ("1h30m", Some(5400.0)),
            ("1.5s", Some(1.5)),
            ("250ms", Some(0.25)),
            ("0", Some(0.0)),
            ("-1", Some(-1.0)),
            ("-1s", Some(-1.0)),
            ("10", Some(10.0)),
            ("", None),
            ("m", None),
            ("5x", None),
            ("5m3", None),
            ("inf", None),
            ("1..s", None),
        ] {
            assert_eq!(seconds(text), wanted, "{text:?}");
        }
    }
}
