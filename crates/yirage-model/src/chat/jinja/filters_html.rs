//! Filters of HTML, and of sizes as people read them.

use std::rc::Rc;

use super::args::Args;
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::lexer::is_space;
use super::value::JinjaValue;
use super::{markup, python};

pub(super) const NAMES: [&str; 3] = ["filesizeformat", "striptags", "xmlattr"];

pub(super) fn apply(name: &str, value: JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    match name {
        "filesizeformat" => {
            let [binary] = args.bind(name, ["binary"])?;
            file_size(&value, binary.is_some_and(|binary| binary.is_true()), budget)
        }
        "xmlattr" => {
            let [space] = args.bind(name, ["autospace"])?;
            attributes(&value, space.is_none_or(|space| space.is_true()), budget)
        }
        _ => {
            let [] = args.bind(name, [])?;
            let value = python::to_text(&value, budget)?;
            let this = value.as_str().unwrap_or_default();
            budget.read(this.len())?;
            without_tags(this, budget)
        }
    }
}

fn file_size(value: &JinjaValue, binary: bool, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let size = match value {
        JinjaValue::Text(text) => text.trim().parse().ok(),
        other => other.as_float(),
    };
    let wrong = || Fault::wrong(format!("`filesizeformat` takes a number, and not a value of kind {}", value.kind()));
    let size: f64 = size.ok_or_else(|| value.undefined_fault().unwrap_or_else(wrong))?;
    let (base, letter) = if binary { (1024.0, "iB") } else { (1000.0, "B") };
    let text = match size {
        1.0 => "1 Byte".to_owned(),
        size if size < base => format!("{} Bytes", size.trunc() as i64),
        size => {
            let (mut unit, mut prefixes) = (base * base, ["k", "M", "G", "T", "P", "E", "Z", "Y"].iter());
            let mut prefix = prefixes.next().unwrap_or(&"k");
            for next in prefixes {
                if size < unit {
                    break;
                }
                (unit, prefix) = (unit * base, next);
            }
            let size = base * size / unit;
            let number = if size.is_finite() { format!("{size:.1}") } else { python::float(size) };
            format!("{number} {}{letter}", if binary { prefix.to_uppercase() } else { (*prefix).to_owned() })
        }
    };
    JinjaValue::text(budget, &text)
}

/// A dictionary as attributes; what has no value is left out.
fn attributes(value: &JinjaValue, space: bool, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let JinjaValue::Dict(dict) = value else {
        return Err(Fault::wrong(format!("`xmlattr` takes a dict, and not a value of kind {}", value.kind())));
    };
    let mut out = BudgetedWriter::new(budget)?;
    for (key, value) in dict.entries() {
        if matches!(value, JinjaValue::None | JinjaValue::Undefined(_)) {
            continue;
        }
        let name = key.as_str().ok_or_else(|| Fault::wrong("`xmlattr` takes keys that are strings"))?;
        if name.contains(|c: char| is_space(c) || matches!(c, '/' | '>' | '=')) {
            return Err(Fault::wrong("`xmlattr` takes keys without white space and without any of `/>=`"));
        }
        out.push_str(if space || !out.as_str().is_empty() { " " } else { "" })?;
        markup::write(key, &mut out)?;
        out.push_str("=\"")?;
        markup::write(value, &mut out)?;
        out.push('"')?;
    }
    Ok(JinjaValue::written(out))
}

/// The text between tags, with one space for white space and characters for their entities.
pub(super) fn without_tags(this: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut bare = BudgetedWriter::new(budget)?;
    let mut rest = this;
    while let Some(start) = rest.find('<') {
        let (open, close) = if rest[start..].starts_with("<!--") { (start + 4, "-->") } else { (start, ">") };
        let Some(end) = rest[open..].find(close) else { break };
        bare.push_str(&rest[..start])?;
        rest = &rest[open + end + close.len()..];
    }
    bare.push_str(rest)?;
    let mut out = BudgetedWriter::new(budget)?;
    for (at, word) in bare.as_str().split(is_space).filter(|word| !word.is_empty()).enumerate() {
        out.push_str(if at > 0 { " " } else { "" })?;
        without_entities(word, &mut out)?;
    }
    Ok(JinjaValue::written(out))
}

/// The text with characters for its entities.
pub(super) fn unescaped(this: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    without_entities(this, &mut out)?;
    Ok(JinjaValue::written(out))
}

/// Entities by number and those that every reader of XML knows, beside the space that does not break.
fn without_entities(word: &str, out: &mut BudgetedWriter) -> JinjaResult<()> {
    let mut parts = word.split('&');
    out.push_str(parts.next().unwrap_or_default())?;
    for part in parts {
        let Some((name, rest)) = part.split_once(';') else {
            out.push('&')?;
            out.push_str(part)?;
            continue;
        };
        let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        });
        let found = match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "nbsp" => Some('\u{a0}'),
            _ => number.and_then(char::from_u32).filter(|c| !c.is_control()),
        };
        match found {
            Some(c) => out.push(c)?,
            None => return Err(Fault::wrong(format!("`striptags` does not know the entity `&{name};`"))),
        }
        out.push_str(rest)?;
    }
    Ok(())
}
