//! Methods of values. Those that would change a value are refused, as the immutable sandbox does.

use std::rc::Rc;

use super::args::{Args, needed};
use super::fault::{Fault, JinjaResult};
use super::markup::{self, TextKind};
use super::render::Rendering;
use super::value::{HelperKind, Items, JinjaList, JinjaValue, Loop};
use super::{methods_text, ops};

const OF_DICT: [&str; 5] = ["get", "items", "keys", "values", "copy"];
const OF_LIST: [&str; 3] = ["count", "index", "copy"];
const CHANGING_DICT: [&str; 6] = ["clear", "pop", "popitem", "setdefault", "update", "fromkeys"];
const CHANGING_LIST: [&str; 8] = ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];

/// Whether values like this have such a method.
pub(super) fn exists(of: &JinjaValue, name: &str) -> bool {
    match of {
        JinjaValue::Dict(_) => OF_DICT.contains(&name) || CHANGING_DICT.contains(&name),
        JinjaValue::List(list) if list.had.is_some() => false,
        JinjaValue::List(list) if list.is_tuple => OF_LIST[..2].contains(&name),
        JinjaValue::List(_) => OF_LIST.contains(&name) || CHANGING_LIST.contains(&name),
        JinjaValue::Text(_) if of.text_kind() == TextKind::Markup && markup::exists(name) => true,
        JinjaValue::Text(_) => methods_text::exists(name),
        JinjaValue::Loop(_) => matches!(name, "cycle" | "changed"),
        JinjaValue::Helper(helper) => matches!(helper.kind, HelperKind::Cycler(_)) && matches!(name, "next" | "reset"),
        JinjaValue::Float(_) => name == "is_integer",
        _ => false,
    }
}

pub(super) fn call(rendering: &mut Rendering, of: &JinjaValue, name: &str, args: Args) -> JinjaResult<JinjaValue> {
    let budget = Rc::clone(&rendering.budget);
    budget.work(1)?;
    match (of, name) {
        (JinjaValue::Text(_), _) if of.text_kind() == TextKind::Markup => markup::call(of, name, args, &budget),
        (JinjaValue::Text(text), _) => methods_text::call(text, of, name, args, &budget),
        (JinjaValue::Dict(dict), "get") => {
            let [key, default] = args.bind(name, ["key", "default"])?;
            let found = ops::entry(dict.entries(), &needed(key, name, "key")?, &budget)?;
            Ok(found.or(default).unwrap_or(JinjaValue::None))
        }
        (JinjaValue::Dict(dict), "items") => {
            let [] = args.bind(name, [])?;
            let mut items = Items::new(&budget);
            for (key, value) in dict.entries() {
                items.push(JinjaValue::pair(&budget, key.clone(), value.clone())?)?;
            }
            items.list()
        }
        (JinjaValue::Dict(dict), "keys" | "values") => {
            let [] = args.bind(name, [])?;
            let mut items = Items::new(&budget);
            for (key, value) in dict.entries() {
                items.push(if name == "keys" { key.clone() } else { value.clone() })?;
            }
            items.list()
        }
        (JinjaValue::Dict(_) | JinjaValue::List(_), "copy") => {
            let [] = args.bind(name, [])?;
            Ok(of.clone())
        }
        (JinjaValue::List(list), "count" | "index") => search(list, name, args, rendering),
        (JinjaValue::Dict(_) | JinjaValue::List(_), _) => {
            Err(Fault::wrong(format!("`{name}` would change a value, which templates cannot do")))
        }
        (JinjaValue::Loop(this), "cycle") => match args.plain.len() {
            0 => Err(Fault::wrong("`cycle` needs values")),
            len => Ok(args.plain[this.at.get() % len].clone()),
        },
        (JinjaValue::Loop(this), "changed") => changed(this, args.plain, rendering),
        (JinjaValue::Helper(helper), _) => {
            let [] = args.bind(name, [])?;
            let HelperKind::Cycler(items) = &helper.kind else { return Err(Fault::wrong("there is no such method")) };
            let at = helper.at.get();
            helper.at.set(if name == "reset" || items.is_empty() { 0 } else { (at + 1) % items.len() });
            Ok(if name == "reset" {
                JinjaValue::None
            } else {
                items.get(at).cloned().unwrap_or(JinjaValue::Undefined(None))
            })
        }
        (JinjaValue::Float(value), _) => {
            let [] = args.bind(name, [])?;
            Ok(JinjaValue::Bool(value.fract() == 0.0))
        }
        _ => Err(Fault::wrong(format!("a {} has no method `{name}`", of.kind()))),
    }
}

fn search(list: &JinjaList, name: &str, args: Args, rendering: &Rendering) -> JinjaResult<JinjaValue> {
    let [wanted] = args.bind(name, ["value"])?;
    let wanted = needed(wanted, name, "value")?;
    let mut count = 0;
    for (at, item) in list.iter().enumerate() {
        if ops::equal(item, &wanted, &rendering.budget)? {
            if name == "index" {
                return Ok(JinjaValue::Int(at as i128));
            }
            count += 1;
        }
    }
    if name == "index" {
        return Err(Fault::wrong("`index`: the list does not contain the value"));
    }
    Ok(JinjaValue::Int(count))
}

fn changed(this: &Loop, values: Vec<JinjaValue>, rendering: &Rendering) -> JinjaResult<JinjaValue> {
    let mut same = false;
    if let Some(before) = this.changed.borrow().as_ref().filter(|before| before.len() == values.len()) {
        same = true;
        for (a, b) in before.iter().zip(&values) {
            same = same && ops::equal(a, b, &rendering.budget)?;
        }
    }
    let before = if this.over.get() { None } else { this.changed.replace(Some(values)) };
    drop(before);
    Ok(JinjaValue::Bool(!same))
}
