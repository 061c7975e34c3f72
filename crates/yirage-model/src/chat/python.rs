//! Values as Python writes them: `str()`, `repr()` and `json.dumps(..., ensure_ascii=False)`.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Deepest value that is written.
const MAX_DEPTH: usize = 64;

/// `str(value)`: text as it is, everything else as `repr`.
pub(super) fn str(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => {
            out.push_str(text);
            Ok(())
        }
        None if value.is_undefined() => Ok(()),
        None => repr(value, 0, out),
    }
}

fn repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => out.push_str(&float(f64::try_from(value.clone())?)),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (i, item) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                repr(&item, depth + 1, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("value nests deeper than {MAX_DEPTH}")));
    }
    Ok(())
}

fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == mark => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(mark);
}

/// `repr(float)`: shortest digits, an exponent from 1e16 on and below 1e-4.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// How `json.dumps` lays out a value.
pub(super) struct Layout {
    /// Text of one level; `None` for everything on one line.
    pub(super) indent: Option<String>,
    /// Between items, and between a key and its value.
    pub(super) separators: (String, String),
    pub(super) sort_keys: bool,
    pub(super) ensure_ascii: bool,
}

impl Layout {
    /// Writes `value`.
    pub(super) fn dump(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        check_depth(depth)?;
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::String => self.text(value.as_str().unwrap_or_default(), out),
            ValueKind::Number if !value.is_integer() => {
                out.push_str(&match f64::try_from(value.clone())? {
                    v if v.is_nan() => "NaN".to_owned(),
                    v if v.is_infinite() => if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
                    v => float(v),
                });
            }
            ValueKind::Number => out.push_str(&value.to_string()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.block(('[', ']'), items.len(), depth, out, |i, out| self.dump(&items[i], depth + 1, out))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.block(('{', '}'), keys.len(), depth, out, |i, out| {
                    match keys[i].as_str() {
                        Some(text) => self.text(text, out),
                        None => self.text(&keys[i].to_string(), out),
                    }
                    out.push_str(&self.separators.1);
                    self.dump(&value.get_item(&keys[i])?, depth + 1, out)
                })?;
            }
            kind => {
                let detail = format!("a value of kind {kind} cannot be written as JSON");
                return Err(Error::new(ErrorKind::BadSerialization, detail));
            }
        }
        Ok(())
    }

    fn block(
        &self,
        (open, close): (char, char),
        items: usize,
        depth: usize,
        out: &mut String,
        mut item: impl FnMut(usize, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                out.push_str(&indent.repeat(depth));
            }
        };
        out.push(open);
        for i in 0..items {
            out.push_str(if i > 0 { &self.separators.0 } else { "" });
            line(depth + 1, out);
            item(i, out)?;
        }
        if items > 0 {
            line(depth, out);
        }
        out.push(close);
        Ok(())
    }

    fn text(&self, text: &str, out: &mut String) {
        out.push('"');
        let mut utf16 = [0; 2];
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if (c as u32) < 0x20 || self.ensure_ascii && !matches!(c, ' '..='~' | '\x7f') => {
                    c.encode_utf16(&mut utf16).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn floats_as_python_prints_them() {
        let cases = [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (-0.0, "-0.0"),
            (1e100, "1e+100"),
            (123456789.125, "123456789.125"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }
}
