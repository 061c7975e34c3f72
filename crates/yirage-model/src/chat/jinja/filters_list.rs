//! Filters of lists and dictionaries.

use std::cmp::Ordering;
use std::rc::Rc;

use super::args::{Args, needed, size, text};
use super::ast::Binary;
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::render::Rendering;
use super::value::{Items, JinjaValue};
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

pub(super) fn apply(rendering: &mut Rendering, name: &str, value: JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
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
fn plain(rendering: &Rendering, name: &str, value: &JinjaValue) -> JinjaResult<JinjaValue> {
    let budget = &rendering.budget;
    match (name, value) {
        ("length" | "count", _) => Ok(JinjaValue::Int(value.len(budget)? as i128)),
        // The first character is that of the text alone; the last one is reached as an item, which is markup in markup.
        ("first", JinjaValue::Text(this)) => match this.chars().next() {
            Some(c) => JinjaValue::text(budget, c.encode_utf8(&mut [0; 4])),
            None => Ok(JinjaValue::Undefined(None)),
        },
        ("last", JinjaValue::Text(_)) => ops::item(value, &JinjaValue::Int(-1), budget),
        ("first", JinjaValue::List(list)) if list.had.is_some() => {
            let had = list.had.as_ref().map_or(0, |had| had.replace(list.len().min(had.get() + 1)));
            Ok(list.get(had).cloned().unwrap_or(JinjaValue::Undefined(None)))
        }
        ("last", JinjaValue::List(list)) if list.had.is_some() => Err(Fault::wrong("`last` takes no iterator")),
        ("first" | "last", _) => {
            let items = value.iterate(budget)?;
            let found = if name == "first" { items.first() } else { items.last() };
            Ok(found.cloned().unwrap_or(JinjaValue::Undefined(None)))
        }
        ("list", JinjaValue::List(list)) if !list.is_tuple && list.had.is_none() => Ok(value.clone()),
        ("reverse", JinjaValue::Text(this)) => {
            let mut out = BudgetedWriter::new(budget)?;
            this.chars().rev().try_for_each(|c| out.push(c))?;
            Ok(JinjaValue::written_as(value.text_kind(), out))
        }
        ("items", JinjaValue::Undefined(_)) => Items::new(budget).iterator(),
        ("items", JinjaValue::Dict(dict)) => {
            let mut items = Items::new(budget);
            for (key, value) in dict.entries() {
                items.push(JinjaValue::pair(budget, key.clone(), value.clone())?)?;
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

fn map(rendering: &mut Rendering, value: &JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
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
fn select(
    rendering: &mut Rendering,
    value: &JinjaValue,
    args: Args,
    attr: Option<&JinjaValue>,
    wanted: bool,
) -> JinjaResult<JinjaValue> {
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

fn join(rendering: &Rendering, value: &JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
    let [separator, attr] = args.bind("join", ["d", "attribute"])?;
    let attr = attr.filter(|attr| !matches!(attr, JinjaValue::None));
    let budget = &rendering.budget;
    let separator = separator.map_or_else(|| JinjaValue::text(budget, ""), |d| python::to_text(&d, budget))?;
    let separator = separator.as_str().unwrap_or_default();
    let mut out = BudgetedWriter::new(budget)?;
    if let (JinjaValue::Text(this), None) = (value, &attr) {
        for (at, c) in this.chars().enumerate() {
            out.push_str(if at > 0 { separator } else { "" })?;
            out.push(c)?;
        }
        return Ok(JinjaValue::written(out));
    }
    for (at, item) in value.iterate(budget)?.iter().enumerate() {
        budget.work(1)?;
        out.push_str(if at > 0 { separator } else { "" })?;
        match &attr {
            Some(attr) => python::str(&filters::path(rendering, item, attr)?, &mut out)?,
            None => python::str(item, &mut out)?,
        }
    }
    Ok(JinjaValue::written(out))
}

/// What two values are compared as where upper and lower case are one.
fn folded(value: JinjaValue, case_sensitive: bool, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    match &value {
        JinjaValue::Text(this) if !case_sensitive => {
            super::filters_text::mapped(this, budget, |c, out| c.to_lowercase().try_for_each(out))
        }
        _ => Ok(value),
    }
}

/// The filters that look at an attribute of each item, or at the item itself.
fn by_attribute(rendering: &Rendering, name: &str, value: &JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
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
    let attr = attr.filter(|attr| !matches!(attr, JinjaValue::None));
    let case = case.is_some_and(|case| case.is_true());
    let key = |item: &JinjaValue| {
        let found = attr.as_ref().map_or_else(|| Ok(item.clone()), |attr| keys(rendering, item, attr))?;
        let found = if found.is_undefined() && name == "groupby" { extra.clone().unwrap_or(found) } else { found };
        // Sorted are lists of one value or more: two that are not there are as good as each other.
        if name == "sort" && attr.is_some() && !matches!(found, JinjaValue::List(_)) {
            return JinjaValue::list(budget, vec![folded(found, case, budget)?], false);
        }
        if name == "sum" { Ok(found) } else { folded(found, case, budget) }
    };
    let mut keyed = Vec::new();
    let mut held = budget.reserve(0)?;
    for item in list.iter() {
        held.grow(2 * size_of::<(JinjaValue, JinjaValue)>())?;
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
            let start = extra.unwrap_or(JinjaValue::Int(0));
            keyed.iter().try_fold(start, |sum, (key, _)| ops::binary(Binary::Add, &sum, key, budget))
        }
    }
}

/// The value at a path, or the values at several with commas in between.
fn keys(rendering: &Rendering, item: &JinjaValue, attr: &JinjaValue) -> JinjaResult<JinjaValue> {
    match attr {
        JinjaValue::Text(paths) if paths.contains(',') => {
            let mut parts = Items::new(&rendering.budget);
            for path in paths.split(',') {
                let path = JinjaValue::text(&rendering.budget, path)?;
                parts.push(filters::path(rendering, item, &path)?)?;
            }
            parts.list()
        }
        _ => filters::path(rendering, item, attr),
    }
}

fn sorted(keyed: &mut Vec<(JinjaValue, JinjaValue)>, reverse: bool, budget: &RenderBudget) -> JinjaResult<()> {
    ops::sort_by(keyed, |a, b| {
        let order = ops::order(&a.0, &b.0, budget)?;
        Ok(if reverse { order.reverse() } else { order })
    })
}

fn extreme(keyed: Vec<(JinjaValue, JinjaValue)>, largest: bool, budget: &RenderBudget) -> JinjaResult<JinjaValue> {
    let mut best: Option<(JinjaValue, JinjaValue)> = None;
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
    Ok(best.map_or(JinjaValue::Undefined(None), |(_, item)| item))
}

fn unique(keyed: Vec<(JinjaValue, JinjaValue)>, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut seen: Vec<JinjaValue> = Vec::new();
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
    mut keyed: Vec<(JinjaValue, JinjaValue)>,
    attr: Option<&JinjaValue>,
    budget: &Rc<RenderBudget>,
) -> JinjaResult<JinjaValue> {
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
        groups.push(JinjaValue::pair(budget, shown, items.list()?)?)?;
    }
    groups.list()
}

/// `batch`: rows of a length; `slice`: a number of rows. The last ones may be filled.
fn chunks(name: &str, value: &JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let param = if name == "batch" { "linecount" } else { "slices" };
    let [count, fill] = args.bind(name, [param, "fill_with"])?;
    let count = size(Some(&needed(count, name, param)?), 0, name)?;
    let fill = fill.filter(|fill| !matches!(fill, JinjaValue::None));
    let list = value.iterate(budget)?;
    if count == 0 {
        return Err(Fault::wrong(format!("`{name}` takes a number above 0")));
    }
    let mut rows = Items::new(budget);
    let row = |items: &[JinjaValue], missing: usize| {
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

fn dict_sort(value: &JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let [case, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let JinjaValue::Dict(dict) = value else {
        return Err(Fault::wrong(format!("`dictsort` takes a dict, and not a value of kind {}", value.kind())));
    };
    let case = case.is_some_and(|case| case.is_true());
    let by_value = match by.as_ref().map_or(Ok("key"), |by| text(by, "dictsort"))? {
        "key" => false,
        "value" => true,
        other => return Err(Fault::wrong(format!("`dictsort` goes by key or value, and not by `{other}`"))),
    };
    let mut keyed = Vec::new();
    let mut held = budget.reserve(0)?;
    for (key, value) in dict.entries() {
        held.grow(2 * size_of::<(JinjaValue, JinjaValue)>())?;
        let pair = JinjaValue::pair(budget, key.clone(), value.clone())?;
        keyed.push((folded(if by_value { value.clone() } else { key.clone() }, case, budget)?, pair));
    }
    sorted(&mut keyed, reverse.is_some_and(|reverse| reverse.is_true()), budget)?;
    let mut items = Items::new(budget);
    keyed.into_iter().try_for_each(|(_, item)| items.push(item))?;
    items.list()
}
