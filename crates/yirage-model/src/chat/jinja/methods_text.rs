//! Python's methods of strings.

use std::rc::Rc;

use super::args::{Args, int, needed, size, text};
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::filters_text;
use super::format;
use super::lexer::is_space;
use super::python;
use super::value::{Items, JinjaValue};

const NAMES: [&str; 42] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
    "expandtabs",
    "isidentifier",
];

pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Calls the method `name` of `this`, which is `value` too.
pub(super) fn call(
    this: &str,
    value: &JinjaValue,
    name: &str,
    args: Args,
    budget: &Rc<RenderBudget>,
) -> JinjaResult<JinjaValue> {
    budget.read(this.len())?;
    match name {
        "format" => format::braces(this, value.text_kind(), &args, budget),
        "startswith" | "endswith" => begins(this, name, args, budget),
        "find" | "rfind" | "index" | "rindex" | "count" => search(this, name, args, budget),
        "strip" | "lstrip" | "rstrip" => strip(this, value, name, args, budget),
        "split" | "rsplit" => split(this, name, args, budget),
        "partition" | "rpartition" => partition(this, value, name, args, budget),
        "center" | "ljust" | "rjust" | "zfill" => pad(this, name, args, budget),
        "removeprefix" | "removesuffix" => {
            let [affix] = args.bind(name, ["affix"])?;
            let affix = needed(affix, name, "affix")?;
            let affix = text(&affix, name)?;
            let rest = if name == "removeprefix" { this.strip_prefix(affix) } else { this.strip_suffix(affix) };
            rest.map_or_else(|| Ok(value.clone()), |rest| JinjaValue::text(budget, rest))
        }
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"])?;
            let (old, new) = (needed(old, name, "old")?, needed(new, name, "new")?);
            filters_text::replace(this, text(&old, name)?, text(&new, name)?, int(count.as_ref(), -1, name)?, budget)
        }
        "join" => {
            let [items] = args.bind(name, ["iterable"])?;
            let items = needed(items, name, "iterable")?.iterate(budget)?;
            let mut out = BudgetedWriter::new(budget)?;
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { this } else { "" })?;
                out.push_str(text(item, name)?)?;
            }
            Ok(JinjaValue::written(out))
        }
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"])?;
            lines(this, keep.is_some_and(|keep| keep.is_true()), budget)
        }
        "expandtabs" => {
            let [tab] = args.bind(name, ["tabsize"])?;
            expand_tabs(this, size(tab.as_ref(), 8, name)?, budget)
        }
        _ => {
            let [] = args.bind(name, [])?;
            plain(this, name, budget)
        }
    }
}

/// Methods without arguments.
fn plain(this: &str, name: &str, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let all = |is: fn(char) -> bool| !this.is_empty() && this.chars().all(is);
    let cased = |wrong: fn(char) -> bool| {
        this.chars().any(|c| c.is_lowercase() || c.is_uppercase()) && !this.chars().any(wrong)
    };
    Ok(JinjaValue::Bool(match name {
        "lower" | "casefold" => return filters_text::mapped(this, budget, |c, out| c.to_lowercase().try_for_each(out)),
        "upper" => return filters_text::mapped(this, budget, |c, out| c.to_uppercase().try_for_each(out)),
        "swapcase" => {
            return filters_text::mapped(this, budget, |c, out| {
                if c.is_uppercase() { c.to_lowercase().try_for_each(out) } else { c.to_uppercase().try_for_each(out) }
            });
        }
        "capitalize" => return filters_text::capitalize(this, budget),
        "title" => return filters_text::title(this, budget, |c| !c.is_alphabetic()),
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => this.is_ascii(),
        "isdecimal" | "isdigit" | "isnumeric" => all(char::is_numeric),
        "islower" => cased(char::is_uppercase),
        "isupper" => cased(char::is_lowercase),
        "isprintable" => this.chars().all(python::is_printable),
        "isspace" => all(is_space),
        "isidentifier" => {
            let first = this.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            first && this.chars().all(|c| c.is_alphanumeric() || c == '_')
        }
        _ => return Err(Fault::wrong(format!("a string has no method `{name}`"))),
    }))
}

fn begins(this: &str, name: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [affix, start, end] = args.bind(name, ["affix", "start", "end"])?;
    let range = within(this, start, end)?;
    let affix = needed(affix, name, "affix")?;
    let fits = |affix: &JinjaValue| {
        let affix = text(affix, name)?;
        Ok(range.is_some_and(|(_, t)| if name == "startswith" { t.starts_with(affix) } else { t.ends_with(affix) }))
    };
    let JinjaValue::List(list) = &affix else { return fits(&affix).map(JinjaValue::Bool) };
    for affix in list.iter() {
        budget.read(affix.as_str().unwrap_or_default().len())?;
        if fits(affix)? {
            return Ok(JinjaValue::Bool(true));
        }
    }
    Ok(JinjaValue::Bool(false))
}

/// The characters from `start` to `end` with their place; `None` where `start` is behind the end.
fn within(this: &str, start: Option<JinjaValue>, end: Option<JinjaValue>) -> JinjaResult<Option<(usize, &str)>> {
    let bounds = [start, end].map(|bound| bound.filter(|bound| !matches!(bound, JinjaValue::None)));
    if bounds.iter().all(Option::is_none) {
        return Ok(Some((0, this)));
    }
    let len = this.chars().count() as i128;
    let place = |bound: &Option<JinjaValue>, default: i128| {
        int(bound.as_ref(), default, "slice").map(|at| if at < 0 { (at + len).max(0) } else { at })
    };
    let (first, last) = (place(&bounds[0], 0)?, place(&bounds[1], len)?.min(len));
    let byte = |at: i128| this.char_indices().nth(at as usize).map_or(this.len(), |(byte, _)| byte);
    Ok((first <= last).then(|| (first as usize, &this[byte(first)..byte(last)])))
}

fn search(this: &str, name: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [part, start, end] = args.bind(name, ["sub", "start", "end"])?;
    let part = needed(part, name, "sub")?;
    let part = text(&part, name)?;
    let range = within(this, start, end)?;
    budget.read(this.len() + part.len())?;
    if name == "count" {
        let count = |range: &str| if part.is_empty() { range.chars().count() + 1 } else { range.matches(part).count() };
        return Ok(JinjaValue::Int(range.map_or(0, |(_, range)| count(range)) as i128));
    }
    let find = |range: &str| if name.starts_with('r') { range.rfind(part) } else { range.find(part) };
    match range.and_then(|(from, range)| find(range).map(|at| from + range[..at].chars().count())) {
        Some(at) => Ok(JinjaValue::Int(at as i128)),
        None if name.ends_with("find") => Ok(JinjaValue::Int(-1)),
        None => Err(Fault::wrong(format!("`{name}`: the string does not contain the part"))),
    }
}

fn strip(this: &str, value: &JinjaValue, name: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [chars] = args.bind(name, ["chars"])?;
    let chars = chars.filter(|chars| !matches!(chars, JinjaValue::None));
    let chars = chars.as_ref().map(|chars| text(chars, name)).transpose()?;
    // Each character at an end is compared with each of `chars`.
    budget.work(this.len().saturating_mul(chars.map_or(0, str::len)) / 64)?;
    let taken = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let kept = match name {
        "lstrip" => this.trim_start_matches(taken),
        "rstrip" => this.trim_end_matches(taken),
        _ => this.trim_matches(taken),
    };
    if kept.len() == this.len() { Ok(value.clone()) } else { JinjaValue::text(budget, kept) }
}

fn split(this: &str, name: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [separator, most] = args.bind(name, ["sep", "maxsplit"])?;
    let most = int(most.as_ref(), -1, name)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let separator = separator.filter(|separator| !matches!(separator, JinjaValue::None));
    let mut parts = Items::new(budget);
    let mut add = |part: &str| parts.push(JinjaValue::text(budget, part)?);
    let from_right = name == "rsplit" && most != usize::MAX;
    match &separator {
        Some(separator) => {
            let separator = text(separator, name)?;
            if separator.is_empty() {
                return Err(Fault::wrong("`split` takes a separator that is not empty"));
            }
            if from_right {
                this.rsplitn(most.saturating_add(1), separator).try_for_each(&mut add)?;
            } else {
                this.splitn(most.saturating_add(1), separator).try_for_each(&mut add)?;
            }
        }
        None if from_right => words_from_right(this, most, &mut add)?,
        None => words(this, most, &mut add)?,
    }
    let JinjaValue::List(list) = parts.list()? else { return Err(Fault::wrong("a list is expected")) };
    if !from_right {
        return Ok(JinjaValue::List(list));
    }
    let mut parts = Items::new(budget);
    list.iter().rev().try_for_each(|part| parts.push(part.clone()))?;
    parts.list()
}

/// Words between white space, at most `most` cuts.
fn words(this: &str, most: usize, add: &mut dyn FnMut(&str) -> JinjaResult<()>) -> JinjaResult<()> {
    let mut rest = this.trim_start_matches(is_space);
    let mut cuts = 0;
    while !rest.is_empty() {
        let end = if cuts < most { rest.find(is_space) } else { None };
        let Some(end) = end else {
            // White space at the end goes with the last cut alone.
            return add(rest);
        };
        add(&rest[..end])?;
        rest = rest[end..].trim_start_matches(is_space);
        cuts += 1;
    }
    Ok(())
}

fn words_from_right(this: &str, most: usize, add: &mut dyn FnMut(&str) -> JinjaResult<()>) -> JinjaResult<()> {
    let mut rest = this.trim_end_matches(is_space);
    for _ in 0..most {
        let word = rest.rfind(is_space).map_or(0, |at| at + rest[at..].chars().next().map_or(0, char::len_utf8));
        if word == rest.len() {
            return Ok(());
        }
        add(&rest[word..])?;
        rest = rest[..word].trim_end_matches(is_space);
    }
    if rest.is_empty() { Ok(()) } else { add(rest) }
}

fn partition(
    this: &str,
    value: &JinjaValue,
    name: &str,
    args: Args,
    budget: &Rc<RenderBudget>,
) -> JinjaResult<JinjaValue> {
    let [separator] = args.bind(name, ["sep"])?;
    let separator = needed(separator, name, "sep")?;
    let mark = text(&separator, name)?;
    if mark.is_empty() {
        return Err(Fault::wrong(format!("`{name}` takes a separator that is not empty")));
    }
    let parts = if name == "partition" { this.split_once(mark) } else { this.rsplit_once(mark) };
    let empty = || JinjaValue::text(budget, "");
    let parts = match parts {
        Some((left, right)) => {
            vec![JinjaValue::text(budget, left)?, separator.clone(), JinjaValue::text(budget, right)?]
        }
        None if name == "partition" => vec![value.clone(), empty()?, empty()?],
        None => vec![empty()?, empty()?, value.clone()],
    };
    JinjaValue::list(budget, parts, true)
}

fn pad(this: &str, name: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [width, fill] = args.bind(name, ["width", "fillchar"])?;
    let width = size(Some(&needed(width, name, "width")?), 0, name)?;
    let fill = fill.as_ref().map_or(Ok(" "), |fill| text(fill, name))?;
    let len = this.chars().count();
    let missing = width.saturating_sub(len);
    if fill.chars().count() != 1 {
        return Err(Fault::wrong(format!("`{name}` takes one character to fill with")));
    }
    let mut out = BudgetedWriter::new(budget)?;
    if name == "zfill" {
        let sign = usize::from(this.starts_with(['+', '-']));
        out.push_str(&this[..sign])?;
        out.repeat("0", missing)?;
        out.push_str(&this[sign..])?;
        return Ok(JinjaValue::written(out));
    }
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        // Where both sides cannot be equal, Python's choice depends on the width.
        _ => missing / 2 + (missing & width & 1),
    };
    out.repeat(fill, left)?;
    out.push_str(this)?;
    out.repeat(fill, missing - left)?;
    Ok(JinjaValue::written(out))
}

/// The lines of a text, by all that Python takes for their ends.
pub(super) fn lines(this: &str, keep: bool, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let ends =
        |c: char| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Items::new(budget);
    let mut rest = this;
    while !rest.is_empty() {
        let end = rest.find(ends).unwrap_or(rest.len());
        let mark = match &rest[end..] {
            tail if tail.starts_with("\r\n") => 2,
            tail => tail.chars().next().map_or(0, char::len_utf8),
        };
        lines.push(JinjaValue::text(budget, &rest[..if keep { end + mark } else { end }])?)?;
        rest = &rest[end + mark..];
    }
    lines.list()
}

fn expand_tabs(this: &str, tab: usize, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    let mut column = 0;
    for c in this.chars() {
        match c {
            '\t' => {
                let missing = if tab == 0 { 0 } else { tab - column % tab };
                out.repeat(" ", missing)?;
                column = column.saturating_add(missing);
            }
            _ => {
                out.push(c)?;
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(JinjaValue::written(out))
}
