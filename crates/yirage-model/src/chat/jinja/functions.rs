//! The functions that templates find around them.

use std::rc::Rc;

use super::args::{Args, int, needed, text};
use super::ast::JinjaName;
use super::budget::RenderBudget;
use super::fault::{Fault, JinjaResult};
use super::ops;
use super::render::Rendering;
use super::value::{HelperKind, Items, JinjaValue};
use crate::chat::{clock, limits};

/// Whether there is such a function.
pub(super) fn exists(name: &str) -> bool {
    matches!(name, "range" | "dict" | "namespace" | "cycler" | "joiner" | "raise_exception" | "strftime_now")
}

pub(super) fn call(rendering: &mut Rendering, name: &str, args: Args) -> JinjaResult<JinjaValue> {
    let budget = Rc::clone(&rendering.budget);
    match name {
        "range" => range(args, &budget),
        "dict" => JinjaValue::dict(&budget, pairs(name, args, &budget)?),
        "namespace" => {
            let mut entries = Vec::new();
            for (key, value) in pairs(name, args, &budget)? {
                entries.push((JinjaName::from(text(&key, name)?), value));
            }
            rendering.new_namespace(entries)
        }
        "cycler" if args.plain.is_empty() => Err(Fault::wrong("`cycler` needs values")),
        "cycler" => {
            let items = JinjaValue::list(&budget, args.plain, false)?.iterate(&budget)?;
            JinjaValue::helper(&budget, HelperKind::Cycler(items))
        }
        "joiner" => {
            let [separator] = args.bind(name, ["sep"])?;
            let separator = separator.map_or_else(|| JinjaValue::text(&budget, ", "), Ok)?;
            JinjaValue::helper(&budget, HelperKind::Joiner(separator))
        }
        "raise_exception" => {
            let [message] = args.bind(name, ["message"])?;
            let message = needed(message, name, "message")?;
            let message = super::python::to_text(&message, &budget)?;
            Err(Fault::raised(message.as_str().unwrap_or_default()))
        }
        "strftime_now" => {
            let [format] = args.bind(name, ["format"])?;
            let format = needed(format, name, "format")?;
            let format = text(&format, name)?;
            if format.len() > limits::MAX_FIELD {
                return Err(Fault::limit("length of a time format in bytes", limits::MAX_FIELD as u64));
            }
            JinjaValue::text(&budget, &clock::strftime(rendering.now, format))
        }
        _ => Err(Fault::wrong(format!("there is no function `{name}`"))),
    }
}

fn range(args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [a, b, step] = args.bind("range", ["start", "stop", "step"])?;
    let first = int(a.as_ref(), 0, "range")?;
    let (mut at, stop) = match &b {
        Some(_) => (first, int(b.as_ref(), 0, "range")?),
        None => (0, first),
    };
    let step = int(step.as_ref(), 1, "range")?;
    let more = |at: i128| if step > 0 { at < stop } else { at > stop };
    if step == 0 {
        return Err(Fault::wrong("the step of `range` is 0"));
    }
    let mut items = Items::new(budget);
    let mut count = 0;
    while more(at) {
        count += 1;
        if count > limits::MAX_RANGE {
            return Err(Fault::limit("length of a range", limits::MAX_RANGE as u64));
        }
        items.push(JinjaValue::Int(at))?;
        at = at.saturating_add(step);
    }
    items.list()
}

/// Keys and values of a dictionary or of pairs, and those that were given by name.
fn pairs(callee: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<Vec<(JinjaValue, JinjaValue)>> {
    let Args { plain, named } = args;
    let [from] = Args::of(plain).bind(callee, ["from"])?;
    let mut entries = Vec::new();
    match from {
        None => {}
        Some(missing @ JinjaValue::Undefined(_)) => {
            return Err(missing.undefined_fault().unwrap_or_else(|| Fault::wrong("a value is undefined")));
        }
        Some(JinjaValue::Dict(dict)) => {
            budget.work(dict.entries().len())?;
            entries.extend(dict.entries().iter().cloned());
        }
        Some(other) => {
            for pair in other.iterate(budget)?.iter() {
                match &pair.iterate(budget)?[..] {
                    [key, value] => put(&mut entries, key.clone(), value.clone(), budget)?,
                    _ => return Err(Fault::wrong(format!("`{callee}` takes pairs of a key and a value"))),
                }
            }
        }
    }
    for (name, value) in named {
        put(&mut entries, JinjaValue::text(budget, &name)?, value, budget)?;
    }
    Ok(entries)
}

/// Sets the value of a key.
pub(super) fn put(
    entries: &mut Vec<(JinjaValue, JinjaValue)>,
    key: JinjaValue,
    value: JinjaValue,
    budget: &RenderBudget,
) -> JinjaResult<()> {
    if matches!(key, JinjaValue::Dict(_) | JinjaValue::Undefined(_))
        || matches!(&key, JinjaValue::List(list) if !list.is_tuple)
    {
        return Err(Fault::wrong(format!("a value of kind {} cannot be a key", key.kind())));
    }
    for (found, slot) in entries.iter_mut() {
        if ops::equal(found, &key, budget)? {
            *slot = value;
            return Ok(());
        }
    }
    entries.push((key, value));
    Ok(())
}
