//! Methods of values. Those that would change a value are refused, as the immutable sandbox does.

use std::rc::Rc;

use super::args::{Args, needed};
use super::fault::{Fault, Outcome};
use super::render::Rendering;
use super::value::{HelperKind, Items, List, Loop, Value};
use super::{methods_text, ops};

const OF_DICT: [&str; 5] = ["get", "items", "keys", "values", "copy"];
const OF_LIST: [&str; 3] = ["count", "index", "copy"];
const CHANGING_DICT: [&str; 6] = ["clear", "pop", "popitem", "setdefault", "update", "fromkeys"];
const CHANGING_LIST: [&str; 8] = ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];

/// Whether values like this have such a method.
pub(super) fn exists(of: &Value, name: &str) -> bool {
    match of {
        Value::Dict(_) => OF_DICT.contains(&name) || CHANGING_DICT.contains(&name),
        Value::List(list) if list.had.is_some() => false,
        Value::List(list) if list.is_tuple => OF_LIST[..2].contains(&name),
        Value::List(_) => OF_LIST.contains(&name) || CHANGING_LIST.contains(&name),
        Value::Text(_) => methods_text::exists(name),
        Value::Loop(_) => matches!(name, "cycle" | "changed"),
        Value::Helper(helper) => matches!(helper.kind, HelperKind::Cycler(_)) && matches!(name, "next" | "reset"),
        Value::Float(_) => name == "is_integer",
        _ => false,
    }
}

pub(super) fn call(rendering: &mut Rendering, of: &Value, name: &str, args: Args) -> Outcome<Value> {
    let budget = Rc::clone(&rendering.budget);
    budget.work(1)?;
    match (of, name) {
        (Value::Text(text), _) => methods_text::call(text, of, name, args, &budget),
        (Value::Dict(dict), "get") => {
            let [key, default] = args.bind(name, ["key", "default"])?;
            let found = ops::entry(dict.entries(), &needed(key, name, "key")?, &budget)?;
            Ok(found.or(default).unwrap_or(Value::None))
        }
        (Value::Dict(dict), "items") => {
            let [] = args.bind(name, [])?;
            let mut items = Items::new(&budget);
            for (key, value) in dict.entries() {
                items.push(Value::pair(&budget, key.clone(), value.clone())?)?;
            }
            items.list()
        }
        (Value::Dict(dict), "keys" | "values") => {
            let [] = args.bind(name, [])?;
            let mut items = Items::new(&budget);
            for (key, value) in dict.entries() {
                items.push(if name == "keys" { key.clone() } else { value.clone() })?;
            }
            items.list()
        }
        (Value::Dict(_) | Value::List(_), "copy") => {
            let [] = args.bind(name, [])?;
            Ok(of.clone())
        }
        (Value::List(list), "count" | "index") => search(list, name, args, rendering),
        (Value::Dict(_) | Value::List(_), _) => {
            Err(Fault::wrong(format!("`{name}` would change a value, which templates cannot do")))
        }
        (Value::Loop(this), "cycle") => match args.plain.len() {
            0 => Err(Fault::wrong("`cycle` needs values")),
            len => Ok(args.plain[this.at.get() % len].clone()),
        },
        (Value::Loop(this), "changed") => changed(this, args.plain, rendering),
        (Value::Helper(helper), _) => {
            let [] = args.bind(name, [])?;
            let HelperKind::Cycler(items) = &helper.kind else { return Err(Fault::wrong("there is no such method")) };
            let at = helper.at.get();
            helper.at.set(if name == "reset" || items.is_empty() { 0 } else { (at + 1) % items.len() });
            Ok(if name == "reset" { Value::None } else { items.get(at).cloned().unwrap_or(Value::Undefined(None)) })
        }
        (Value::Float(value), _) => {
            let [] = args.bind(name, [])?;
            Ok(Value::Bool(value.fract() == 0.0))
        }
        _ => Err(Fault::wrong(format!("a {} has no method `{name}`", of.kind()))),
    }
}

fn search(list: &List, name: &str, args: Args, rendering: &Rendering) -> Outcome<Value> {
    let [wanted] = args.bind(name, ["value"])?;
    let wanted = needed(wanted, name, "value")?;
    let mut count = 0;
    for (at, item) in list.iter().enumerate() {
        if ops::equal(item, &wanted, &rendering.budget)? {
            if name == "index" {
                return Ok(Value::Int(at as i128));
            }
            count += 1;
        }
    }
    if name == "index" {
        return Err(Fault::wrong("`index`: the list does not contain the value"));
    }
    Ok(Value::Int(count))
}

fn changed(this: &Loop, values: Vec<Value>, rendering: &Rendering) -> Outcome<Value> {
    let mut same = false;
    if let Some(before) = this.changed.borrow().as_ref().filter(|before| before.len() == values.len()) {
        same = true;
        for (a, b) in before.iter().zip(&values) {
            same = same && ops::equal(a, b, &rendering.budget)?;
        }
    }
    let before = if this.over.get() { None } else { this.changed.replace(Some(values)) };
    drop(before);
    Ok(Value::Bool(!same))
}
