//! Filters of text. All of them write through the budget, so that neither width nor count can make them large.

use std::rc::Rc;

use super::args::{Args, int, needed, size, text};
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::lexer::is_space;
use super::markup::{self, TextKind};
use super::value::JinjaValue;
use super::{methods_text, python};

pub(super) const NAMES: [&str; 14] = [
    "capitalize",
    "center",
    "e",
    "escape",
    "forceescape",
    "indent",
    "lower",
    "replace",
    "title",
    "trim",
    "truncate",
    "upper",
    "urlencode",
    "wordcount",
];

pub(super) fn apply(name: &str, value: JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if value.as_str().is_none() && (name == "indent" || name == "truncate" && !value.is_undefined()) {
        return Err(Fault::wrong(format!("`{name}` takes a string, and not a value of kind {}", value.kind())));
    }
    let value = python::to_text(&value, budget)?;
    let this = value.as_str().unwrap_or_default();
    budget.read(this.len())?;
    let found = match name {
        "center" => {
            let [width] = args.bind(name, ["width"])?;
            center(this, size(width.as_ref(), 80, name)?, budget)?
        }
        "indent" => return indent(&value, args, budget),
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"])?;
            let (old, new) = (needed(old, name, "old")?, needed(new, name, "new")?);
            let count = count.filter(|count| !matches!(count, JinjaValue::None));
            let (old, new) = (python::to_text(&old, budget)?, python::to_text(&new, budget)?);
            return replace(this, text(&old, name)?, text(&new, name)?, int(count.as_ref(), -1, name)?, budget);
        }
        "trim" => {
            let [chars] = args.bind(name, ["chars"])?;
            let chars = chars.as_ref().filter(|chars| !matches!(chars, JinjaValue::None));
            let chars = chars.map(|chars| text(chars, name)).transpose()?;
            budget.work(this.len().saturating_mul(chars.map_or(0, str::len)) / 64)?;
            let kept = this.trim_matches(|c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c)));
            if kept.len() == this.len() { value.clone() } else { JinjaValue::text(budget, kept)? }
        }
        "truncate" => return truncate(&value, args, budget),
        _ => {
            let [] = args.bind(name, [])?;
            plain(&value, name, budget)?
        }
    };
    // Those that are methods of the text leave markup what it is; the others write a text of their own.
    match name {
        "capitalize" | "center" | "lower" | "trim" | "upper" => markup::of_kind(value.text_kind(), &found, budget),
        _ => Ok(found),
    }
}

/// Filters without arguments.
fn plain(value: &JinjaValue, name: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let this = value.as_str().unwrap_or_default();
    match name {
        "lower" => mapped(this, budget, |c, out| c.to_lowercase().try_for_each(out)),
        "upper" => mapped(this, budget, |c, out| c.to_uppercase().try_for_each(out)),
        "capitalize" => capitalize(this, budget),
        "title" => title(this, budget, |c| is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<')),
        "wordcount" => {
            let words = this.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            Ok(JinjaValue::Int(words.count() as i128))
        }
        "urlencode" => url_encode(this, budget),
        "forceescape" => markup::escaped(&markup::of_kind(TextKind::Plain, value, budget)?, budget),
        _ => markup::escaped(value, budget),
    }
}

/// Every character through `map`.
pub(super) fn mapped(
    this: &str,
    budget: &Rc<RenderBudget>,
    map: impl Fn(char, &mut dyn FnMut(char) -> JinjaResult<()>) -> JinjaResult<()>,
) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    let mut add = |c: char| out.push(c);
    this.chars().try_for_each(|c| map(c, &mut add))?;
    Ok(JinjaValue::written(out))
}

pub(super) fn capitalize(this: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    title(this, budget, |_| false)
}

/// Upper case behind every character that `begins` a word and at the beginning, lower case elsewhere.
pub(super) fn title(this: &str, budget: &Rc<RenderBudget>, begins: fn(char) -> bool) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    let mut first = true;
    for c in this.chars() {
        match first {
            true => c.to_uppercase().try_for_each(|c| out.push(c))?,
            false => c.to_lowercase().try_for_each(|c| out.push(c))?,
        }
        first = begins(c);
    }
    Ok(JinjaValue::written(out))
}

fn center(this: &str, width: usize, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let missing = width.saturating_sub(this.chars().count());
    let left = missing / 2 + (missing & width & 1);
    let mut out = BudgetedWriter::new(budget)?;
    out.repeat(" ", left)?;
    out.push_str(this)?;
    out.repeat(" ", missing - left)?;
    Ok(JinjaValue::written(out))
}

fn indent(value: &JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let this = value.as_str().unwrap_or_default();
    let [width, first, blank] = args.bind("indent", ["width", "first", "blank"])?;
    let is_true = |value: Option<JinjaValue>| value.is_some_and(|value| value.is_true());
    let (first, blank) = (is_true(first), is_true(blank));
    let (unit, times) = match &width {
        Some(JinjaValue::Text(text)) => (&text[..], 1),
        other => (" ", size(other.as_ref(), 4, "indent")?),
    };
    let (kind, unit_kind) = (value.text_kind(), width.as_ref().map_or(TextKind::Plain, JinjaValue::text_kind));
    // Markup that is put before lines of no markup escapes each that it meets.
    let meets = kind == TextKind::Plain && unit_kind == TextKind::Markup;
    let mut out = BudgetedWriter::new(budget)?;
    let mut whole = BudgetedWriter::new(budget)?;
    whole.push_str(this)?;
    whole.push('\n')?;
    for (at, line) in methods_text::lines(whole.as_str(), false, budget)?.iterate(budget)?.iter().enumerate() {
        let line = line.as_str().unwrap_or_default();
        if at > 0 {
            out.push('\n')?;
        }
        if if at == 0 { first && (blank || !meets) } else { blank || !line.is_empty() } {
            out.repeat(unit, times)?;
        }
        match meets && (blank || at > 0) {
            true => markup::escape(line, &mut out)?,
            false => out.push_str(line)?,
        }
    }
    match (meets, width) {
        (true, Some(width)) if first && !blank => markup::add(&width, &JinjaValue::written(out), budget),
        (true, _) if blank => Ok(JinjaValue::written_as(TextKind::Markup, out)),
        _ => Ok(JinjaValue::written_as(kind, out)),
    }
}

/// Replaces up to `count` parts, all for a negative number.
pub(super) fn replace(
    this: &str,
    old: &str,
    new: &str,
    count: i128,
    budget: &Rc<RenderBudget>,
) -> JinjaResult<JinjaValue> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = BudgetedWriter::new(budget)?;
    budget.read(this.len() + old.len())?;
    let mut done = 0;
    for (at, part) in this.match_indices(old).take(count) {
        budget.work(1)?;
        out.push_str(&this[done..at])?;
        out.push_str(new)?;
        done = at + part.len();
    }
    out.push_str(&this[done..])?;
    Ok(JinjaValue::written(out))
}

fn truncate(value: &JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let this = value.as_str().unwrap_or_default();
    let [length, kill, end, leeway] = args.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let length = size(length.as_ref(), 255, "truncate")?;
    let leeway = size(leeway.as_ref(), 5, "truncate")?;
    let end = end.map_or_else(|| JinjaValue::text(budget, "..."), Ok)?;
    let end_len = text(&end, "truncate")?.chars().count();
    if length < end_len {
        return Err(Fault::wrong(format!("`truncate` to {length} is shorter than the mark of {end_len}")));
    }
    if this.chars().count() <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let cut = this.char_indices().nth(length - end_len).map_or(this.len(), |(at, _)| at);
    let mut kept = &this[..cut];
    if !kill.is_some_and(|kill| kill.is_true()) {
        kept = kept.rsplit_once(' ').map_or(kept, |(left, _)| left);
    }
    markup::add(&JinjaValue::text_as(value.text_kind(), budget, kept)?, &end, budget)
}

fn url_encode(this: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    for byte in this.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' | b'/' => out.push(byte.into())?,
            other => out.push_str(&format!("%{other:02X}"))?,
        }
    }
    Ok(JinjaValue::written(out))
}
