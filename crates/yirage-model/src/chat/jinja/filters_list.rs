//! Filters of lists and dictionaries.

use std::cmp::Ordering;
use std::rc::Rc;

use super::args::{Args, needed, size, text};
use super::ast::Binary;
use super::budget::{Budget, Writer};
use super::fault::{Fault, Outcome};
use super::render::Rendering;
use super::value::{Items, Value};
use super::{checks, filters, ops, python};

pub(super) const NAMES: [&str; 22] = [
    "batch",
    "count",
    "dictsort",
    "first",
    "groupby",
    "items",
    "join",
    "last",
    "length",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
];

pub(super) fn apply(rendering: &mut Rendering, name: &str, value: Value, args: Args) -> Outcome<Value> {
    let budget = Rc::clone(&rendering.budget);
    match name {
        "map" => map(rendering, &value, args),
        "select" | "reject" => select(rendering, &value, args, None, name == "select"),
        "selectattr" | "rejectattr" => {
            let mut args = args;
            if !value.is_true() {
                return Items::new(&budget).iterator();
            }
            if args.plain.is_empty() {
                return Err(Fault::wrong(format!("`{name}` needs the name of an attribute")));
            }
            let attr = args.plain.remove(0);
            select(rendering, &value, args, Some(&attr), name == "selectattr")
        }
        "join" => join(rendering, &value, args),
        "sort" | "min" | "max" | "unique" | "groupby" | "sum" => by_attribute(rendering, name, &value, args),
        "batch" | "slice" => chunks(name, &value, args, &budget),
        "dictsort" => dict_sort(&value, args, &budget),
        _ => {
            let [] = args.bind(name, [])?;
            plain(rendering, name, &value)
        }
    }
}

/// Filters without arguments.
fn plain(rendering: &Rendering, name: &str, value: &Value) -> Outcome<Value> {
    let budget = &rendering.budget;
    match (name, value) {
        ("length" | "count", _) => Ok(Value::Int(value.len(budget)? as i128)),
        ("first" | "last", Value::Text(_)) => {
            let at = if name == "first" { 0 } else { -1 };
            ops::item(value, &Value::Int(at), budget)
        }
        ("first", Value::List(list)) if list.had.is_some() => {
            let had = list.had.as_ref().map_or(0, |had| had.replace(list.len().min(had.get() + 1)));
            Ok(list.get(had).cloned().unwrap_or(Value::Undefined(None)))
        }
        ("last", Value::List(list)) if list.had.is_some() => Err(Fault::wrong("`last` takes no iterator")),
        ("first" | "last", _) => {
            let items = value.iterate(budget)?;
            let found = if name == "first" { items.first() } else { items.last() };
            Ok(found.cloned().unwrap_or(Value::Undefined(None)))
        }
        ("list", Value::List(list)) if !list.is_tuple && list.had.is_none() => Ok(value.clone()),
        ("reverse", Value::Text(this)) => {
            let mut out = Writer::new(budget)?;
            this.chars().rev().try_for_each(|c| out.push(c))?;
            Ok(Value::written(out))
        }
        ("items", Value::Undefined(_)) => Items::new(budget).iterator(),
        ("items", Value::Dict(dict)) => {
            let mut items = Items::new(budget);
            for (key, value) in dict.entries() {
                items.push(Value::pair(budget, key.clone(), value.clone())?)?;
            }
            items.iterator()
        }
        ("items", _) => Err(Fault::wrong(format!("`items` takes a dict, and not a value of kind {}", value.kind()))),
        _ => {
            let list = value.iterate(budget)?;
            let mut items = Items::new(budget);
            match name {
                "reverse" => {
                    list.iter().rev().try_for_each(|item| items.push(item.clone()))?;
                    // An iterator has to be read to its end before it can be turned around.
                    return if value.kind() == "iterator" { items.list() } else { items.iterator() };
                }
                _ => items.extend(&list)?,
            }
            items.list()
        }
    }
}

fn map(rendering: &mut Rendering, value: &Value, args: Args) -> Outcome<Value> {
    let budget = Rc::clone(&rendering.budget);
    // The reference engine looks at nothing else before it knows that there is something: not even at the arguments.
    if !value.is_true() {
        return Items::new(&budget).iterator();
    }
    let list = value.iterate(&budget)?;
    let mut mapped = Items::new(&budget);
    let by_attribute = args.plain.is_empty();
    if by_attribute {
        let [attr, default] = args.bind("map", ["attribute", "default"])?;
        let attr = needed(attr, "map", "attribute")?;
        for item in list.iter() {
            let found = filters::path(rendering, item, &attr)?;
            mapped.push(match &default {
                Some(default) if found.is_undefined() => default.clone(),
                _ => found,
            })?;
        }
        return mapped.iterator();
    }
    let Args { mut plain, named } = args;
    let filter = plain.remove(0);
    let filter = text(&filter, "map")?;
    budget.enter()?;
    for item in list.iter() {
        budget.work(1 + plain.len() + named.len())?;
        let args = Args { plain: plain.clone(), named: named.clone() };
        mapped.push(filters::apply(rendering, filter, item.clone(), args)?)?;
    }
    budget.leave();
    mapped.iterator()
}

/// The items, or those whose attribute `attr`, for which a test holds.
fn select(rendering: &mut Rendering, value: &Value, args: Args, attr: Option<&Value>, wanted: bool) -> Outcome<Value> {
    let budget = Rc::clone(&rendering.budget);
    if !value.is_true() {
        return Items::new(&budget).iterator();
    }
    let list = value.iterate(&budget)?;
    let mut kept = Items::new(&budget);
    let Args { mut plain, named } = args;
    let test = if plain.is_empty() { None } else { Some(plain.remove(0)) };
    let test = test.as_ref().map(|test| text(test, "select")).transpose()?;
    for item in list.iter() {
        budget.work(1 + plain.len() + named.len())?;
        let tested = match attr {
            Some(attr) => filters::path(rendering, item, attr)?,
            None => item.clone(),
        };
        let holds = match test {
            Some(test) => {
                let args = Args { plain: plain.clone(), named: named.clone() };
                checks::check(rendering, test, &tested, args)?
            }
            None => tested.is_true(),
        };
        if holds == wanted {
            kept.push(item.clone())?;
        }
    }
    kept.iterator()
}

fn join(rendering: &Rendering, value: &Value, args: Args) -> Outcome<Value> {
    let [separator, attr] = args.bind("join", ["d", "attribute"])?;
    let attr = attr.filter(|attr| !matches!(attr, Value::None));
    let budget = &rendering.budget;
    let separator = separator.map_or_else(|| Value::text(budget, ""), |d| python::to_text(&d, budget))?;
    let separator = separator.as_str().unwrap_or_default();
    let mut out = Writer::new(budget)?;
    if let (Value::Text(this), None) = (value, &attr) {
        for (at, c) in this.chars().enumerate() {
            out.push_str(if at > 0 { separator } else { "" })?;
            out.push(c)?;
        }
        return Ok(Value::written(out));
    }
    for (at, item) in value.iterate(budget)?.iter().enumerate() {
        budget.work(1)?;
        out.push_str(if at > 0 { separator } else { "" })?;
        match &attr {
            Some(attr) => python::str(&filters::path(rendering, item, attr)?, &mut out)?,
            None => python::str(item, &mut out)?,
        }
    }
    Ok(Value::written(out))
}

/// What two values are compared as where upper and lower case are one.
fn folded(value: Value, case_sensitive: bool, budget: &Rc<Budget>) -> Outcome<Value> {
    match &value {
        Value::Text(this) if !case_sensitive => {
            super::filters_text::mapped(this, budget, |c, out| c.to_lowercase().try_for_each(out))
        }
        _ => Ok(value),
    }
}

/// The filters that look at an attribute of each item, or at the item itself.
fn by_attribute(rendering: &Rendering, name: &str, value: &Value, args: Args) -> Outcome<Value> {
    let budget = &rendering.budget;
    let list = value.iterate(budget)?;
    let [first, second, third] = match name {
        "sort" => args.bind(name, ["reverse", "case_sensitive", "attribute"])?,
        "groupby" => args.bind(name, ["attribute", "default", "case_sensitive"])?,
        "sum" => args.bind(name, ["attribute", "start", "-"])?,
        _ => args.bind(name, ["case_sensitive", "attribute", "-"])?,
    };
    let (attr, case, extra) = match name {
        "sort" => (third, second, first),
        "groupby" => (first, third, second),
        "sum" => (first, None, second),
        _ => (second, first, None),
    };
    let attr = attr.filter(|attr| !matches!(attr, Value::None));
    let case = case.is_some_and(|case| case.is_true());
    let key = |item: &Value| {
        let found = attr.as_ref().map_or_else(|| Ok(item.clone()), |attr| keys(rendering, item, attr))?;
        let found = if found.is_undefined() && name == "groupby" { extra.clone().unwrap_or(found) } else { found };
        // Sorted are lists of one value or more: two that are not there are as good as each other.
        if name == "sort" && attr.is_some() && !matches!(found, Value::List(_)) {
            return Value::list(budget, vec![folded(found, case, budget)?], false);
        }
        if name == "sum" { Ok(found) } else { folded(found, case, budget) }
    };
    let mut keyed = Vec::new();
    let mut held = budget.hold(0)?;
    for item in list.iter() {
        held.grow(2 * size_of::<(Value, Value)>())?;
        keyed.push((key(item)?, item.clone()));
    }
    match name {
        "sort" => {
            let reverse = extra.is_some_and(|reverse| reverse.is_true());
            sorted(&mut keyed, reverse, budget)?;
            let mut items = Items::new(budget);
            keyed.into_iter().try_for_each(|(_, item)| items.push(item))?;
            items.list()
        }
        "min" | "max" => extreme(keyed, name == "max", budget),
        "unique" => unique(keyed, budget),
        "groupby" => group(rendering, keyed, attr.as_ref(), budget),
        _ => {
            let start = extra.unwrap_or(Value::Int(0));
            keyed.iter().try_fold(start, |sum, (key, _)| ops::binary(Binary::Add, &sum, key, budget))
        }
    }
}

/// The value at a path, or the values at several with commas in between.
fn keys(rendering: &Rendering, item: &Value, attr: &Value) -> Outcome<Value> {
    match attr {
        Value::Text(paths) if paths.contains(',') => {
            let mut parts = Items::new(&rendering.budget);
            for path in paths.split(',') {
                let path = Value::text(&rendering.budget, path)?;
                parts.push(filters::path(rendering, item, &path)?)?;
            }
            parts.list()
        }
        _ => filters::path(rendering, item, attr),
    }
}

fn sorted(keyed: &mut Vec<(Value, Value)>, reverse: bool, budget: &Budget) -> Outcome<()> {
    ops::sort_by(keyed, |a, b| {
        let order = ops::order(&a.0, &b.0, budget)?;
        Ok(if reverse { order.reverse() } else { order })
    })
}

fn extreme(keyed: Vec<(Value, Value)>, largest: bool, budget: &Budget) -> Outcome<Value> {
    let mut best: Option<(Value, Value)> = None;
    let wanted = if largest { Ordering::Greater } else { Ordering::Less };
    for (key, item) in keyed {
        let better = match &best {
            Some((best, _)) => ops::order(&key, best, budget)? == wanted,
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::Undefined(None), |(_, item)| item))
}

fn unique(keyed: Vec<(Value, Value)>, budget: &Rc<Budget>) -> Outcome<Value> {
    let mut seen: Vec<Value> = Vec::new();
    let mut items = Items::new(budget);
    for (key, item) in keyed {
        let mut known = false;
        for other in &seen {
            if ops::equal(other, &key, budget)? {
                known = true;
                break;
            }
        }
        if !known {
            seen.push(key);
            items.push(item)?;
        }
    }
    items.iterator()
}

/// Pairs of a key and the items of that key, in the order of the keys. The key is shown as the first item has it.
fn group(
    rendering: &Rendering,
    mut keyed: Vec<(Value, Value)>,
    attr: Option<&Value>,
    budget: &Rc<Budget>,
) -> Outcome<Value> {
    let attr = attr.ok_or_else(|| Fault::wrong("`groupby` needs the name of an attribute"))?;
    sorted(&mut keyed, false, budget)?;
    let mut groups = Items::new(budget);
    let mut at = 0;
    while at < keyed.len() {
        let mut items = Items::new(budget);
        let begin = at;
        while at < keyed.len() && ops::equal(&keyed[begin].0, &keyed[at].0, budget)? {
            items.push(keyed[at].1.clone())?;
            at += 1;
        }
        // A value that does not even equal itself is a group of its own.
        if at == begin {
            items.push(keyed[at].1.clone())?;
            at += 1;
        }
        let shown = filters::path(rendering, &keyed[begin].1, attr)?;
        let shown = if shown.is_undefined() { keyed[begin].0.clone() } else { shown };
        groups.push(Value::pair(budget, shown, items.list()?)?)?;
    }
    groups.list()
}

/// `batch`: rows of a length; `slice`: a number of rows. The last ones may be filled.
fn chunks(name: &str, value: &Value, args: Args, budget: &Rc<Budget>) -> Outcome<Value> {
    let param = if name == "batch" { "linecount" } else { "slices" };
    let [count, fill] = args.bind(name, [param, "fill_with"])?;
    let count = size(Some(&needed(count, name, param)?), 0, name)?;
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    let list = value.iterate(budget)?;
    if count == 0 {
        return Err(Fault::wrong(format!("`{name}` takes a number above 0")));
    }
    let mut rows = Items::new(budget);
    let row = |items: &[Value], missing: usize| {
        let mut row = Items::new(budget);
        row.extend(items)?;
        if let Some(fill) = &fill {
            (0..missing).try_for_each(|_| row.push(fill.clone()))?;
        }
        row.list()
    };
    if name == "batch" {
        list.chunks(count).try_for_each(|items| rows.push(row(items, count - items.len())?))?;
        return rows.iterator();
    }
    let (each, more) = (list.len() / count, list.len() % count);
    let mut at = 0;
    for i in 0..count {
        let len = each + usize::from(i < more);
        let missing = usize::from(i >= more);
        rows.push(row(&list[at..at + len], missing)?)?;
        at += len;
    }
    rows.iterator()
}

fn dict_sort(value: &Value, args: Args, budget: &Rc<Budget>) -> Outcome<Value> {
    let [case, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let Value::Dict(dict) = value else {
        return Err(Fault::wrong(format!("`dictsort` takes a dict, and not a value of kind {}", value.kind())));
    };
    let case = case.is_some_and(|case| case.is_true());
    let by_value = match by.as_ref().map_or(Ok("key"), |by| text(by, "dictsort"))? {
        "key" => false,
        "value" => true,
        other => return Err(Fault::wrong(format!("`dictsort` goes by key or value, and not by `{other}`"))),
    };
    let mut keyed = Vec::new();
    let mut held = budget.hold(0)?;
    for (key, value) in dict.entries() {
        held.grow(2 * size_of::<(Value, Value)>())?;
        let pair = Value::pair(budget, key.clone(), value.clone())?;
        keyed.push((folded(if by_value { value.clone() } else { key.clone() }, case, budget)?, pair));
    }
    sorted(&mut keyed, reverse.is_some_and(|reverse| reverse.is_true()), budget)?;
    let mut items = Items::new(budget);
    keyed.into_iter().try_for_each(|(_, item)| items.push(item))?;
    items.list()
}
