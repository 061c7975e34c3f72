//! Values as Python writes them: `str()`, `repr()` and `json.dumps`.

use std::rc::Rc;

use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::markup::TextKind;
use super::ops;
use super::value::JinjaValue;

/// `str(value)`: text as it is, everything else as `repr`.
pub(super) fn str(value: &JinjaValue, out: &mut BudgetedWriter) -> JinjaResult<()> {
    match value {
        JinjaValue::Text(text) => out.push_str(text),
        JinjaValue::Undefined(_) => Ok(()),
        _ => repr(value, out),
    }
}

/// `str(value)` as a value.
pub(super) fn to_text(value: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if let JinjaValue::Text(_) = value {
        return Ok(value.clone());
    }
    let mut out = BudgetedWriter::new(budget)?;
    str(value, &mut out)?;
    Ok(JinjaValue::written(out))
}

/// `repr(value)`.
pub(super) fn repr(value: &JinjaValue, out: &mut BudgetedWriter) -> JinjaResult<()> {
    out.budget().work(1)?;
    match value {
        JinjaValue::Undefined(_) => out.push_str("Undefined"),
        JinjaValue::None => out.push_str("None"),
        JinjaValue::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
        JinjaValue::Int(value) => out.push_str(&value.to_string()),
        JinjaValue::Digits(digits) => out.push_str(digits),
        JinjaValue::Float(value) => out.push_str(&float(*value)),
        JinjaValue::Text(text) if value.text_kind() == TextKind::Markup => {
            out.push_str("Markup(")?;
            quote(text, out)?;
            out.push(')')
        }
        JinjaValue::Text(text) => quote(text, out),
        JinjaValue::List(list) if list.had.is_some() => out.push_str("<generator object>"),
        JinjaValue::List(list) => {
            out.push_str(if list.is_tuple { "(" } else { "[" })?;
            for (i, item) in list.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" })?;
                repr(item, out)?;
            }
            out.push_str(match (list.is_tuple, list.len()) {
                (true, 1) => ",)",
                (true, _) => ")",
                (false, _) => "]",
            })
        }
        JinjaValue::Dict(dict) => {
            out.push('{')?;
            for (i, (key, value)) in dict.entries().iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" })?;
                repr(key, out)?;
                out.push_str(": ")?;
                repr(value, out)?;
            }
            out.push('}')
        }
        JinjaValue::Macro(closure) => out.push_str(&format!("<Macro {}>", closure.decl.name)),
        JinjaValue::Method(method) => out.push_str(&format!("<method {}>", method.name)),
        JinjaValue::Function(name) => out.push_str(&format!("<function {name}>")),
        JinjaValue::Namespace(_) | JinjaValue::Loop(_) | JinjaValue::Helper(_) => {
            out.push_str(&format!("<{}>", value.kind()))
        }
    }
}

fn quote(text: &str, out: &mut BudgetedWriter) -> JinjaResult<()> {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark)?;
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if c == mark => format!("\\{c}"),
            c if is_printable(c) => continue,
            c if (c as u32) < 0x100 => format!("\\x{:02x}", c as u32),
            c if (c as u32) < 0x10000 => format!("\\u{:04x}", c as u32),
            c => format!("\\U{:08x}", c as u32),
        };
        out.push_str(&text[plain..at])?;
        out.push_str(&escape)?;
        plain = at + c.len_utf8();
    }
    out.push_str(&text[plain..])?;
    out.push(mark)
}

/// What `repr` writes as it is: no controls, no spaces but the usual one, nothing invisible or private.
pub(super) fn is_printable(c: char) -> bool {
    let hidden = matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}');
    c == ' ' || !c.is_control() && !c.is_whitespace() && !hidden
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
pub(super) struct JsonDumpOptions {
    /// Text of one level; `None` for everything on one line.
    pub(super) indent: Option<String>,
    /// Between items, and between a key and its value.
    pub(super) separators: (String, String),
    pub(super) sort_keys: bool,
    pub(super) ensure_ascii: bool,
}

impl JsonDumpOptions {
    /// Writes `value`.
    pub(super) fn dump(&self, value: &JinjaValue, depth: usize, out: &mut BudgetedWriter) -> JinjaResult<()> {
        out.budget().work(1)?;
        match value {
            JinjaValue::None => out.push_str("null"),
            JinjaValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            JinjaValue::Text(text) => self.text(text, out),
            JinjaValue::Float(v) if v.is_nan() => out.push_str("NaN"),
            JinjaValue::Float(v) if v.is_infinite() => out.push_str(if *v > 0.0 { "Infinity" } else { "-Infinity" }),
            JinjaValue::Float(v) => out.push_str(&float(*v)),
            JinjaValue::Int(value) => out.push_str(&value.to_string()),
            JinjaValue::Digits(digits) => out.push_str(digits),
            JinjaValue::List(items) if items.had.is_none() => {
                self.block(['[', ']'], items.len(), depth, out, |i, out| self.dump(&items[i], depth + 1, out))
            }
            JinjaValue::Dict(dict) => {
                let mut entries = dict.entries().to_vec();
                out.budget().work(entries.len())?;
                if self.sort_keys {
                    ops::sort_by(&mut entries, |a, b| ops::order(&a.0, &b.0, out.budget()))?;
                }
                self.block(['{', '}'], entries.len(), depth, out, |i, out| {
                    self.key(&entries[i].0, out)?;
                    out.push_str(&self.separators.1)?;
                    self.dump(&entries[i].1, depth + 1, out)
                })
            }
            other => Err(Fault::wrong(format!("a value of kind {} cannot be written as JSON", other.kind()))),
        }
    }

    fn key(&self, key: &JinjaValue, out: &mut BudgetedWriter) -> JinjaResult<()> {
        match key {
            JinjaValue::Text(text) => self.text(text, out),
            JinjaValue::None
            | JinjaValue::Bool(_)
            | JinjaValue::Int(_)
            | JinjaValue::Digits(_)
            | JinjaValue::Float(_) => {
                out.push('"')?;
                self.dump(key, 0, out)?;
                out.push('"')
            }
            other => Err(Fault::wrong(format!("a {} cannot be a key in JSON", other.kind()))),
        }
    }

    fn block(
        &self,
        [open, close]: [char; 2],
        items: usize,
        depth: usize,
        out: &mut BudgetedWriter,
        mut item: impl FnMut(usize, &mut BudgetedWriter) -> JinjaResult<()>,
    ) -> JinjaResult<()> {
        let line = |depth: usize, out: &mut BudgetedWriter| match &self.indent {
            Some(indent) => out.push('\n').and_then(|()| out.repeat(indent, depth)),
            None => Ok(()),
        };
        out.push(open)?;
        for i in 0..items {
            out.push_str(if i > 0 { &self.separators.0 } else { "" })?;
            line(depth + 1, out)?;
            item(i, out)?;
        }
        if items > 0 {
            line(depth, out)?;
        }
        out.push(close)
    }

    fn text(&self, text: &str, out: &mut BudgetedWriter) -> JinjaResult<()> {
        out.push('"')?;
        let mut plain = 0;
        for (at, c) in text.char_indices() {
            let escape = match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                c if (c as u32) < 0x20 || self.ensure_ascii && !matches!(c, ' '..='~') => {
                    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                }
                _ => continue,
            };
            out.push_str(&text[plain..at])?;
            out.push_str(&escape)?;
            plain = at + c.len_utf8();
        }
        out.push_str(&text[plain..])?;
        out.push('"')
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
