//! Operators: arithmetic, comparison, membership, items and slices, as Python has them.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

use super::ast::{Binary, JinjaName};
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::format;
use super::markup;
use super::value::{Items, JinjaValue};

/// `a op b` for the operators that need both sides.
pub(super) fn binary(op: Binary, a: &JinjaValue, b: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let formats = op == Binary::Rem && matches!(a, JinjaValue::Text(_));
    if let Some(fault) = a.undefined_fault().or_else(|| b.undefined_fault().filter(|_| !formats)) {
        return Err(fault);
    }
    match (op, a, b) {
        (Binary::Add, JinjaValue::Text(_), JinjaValue::Text(_)) => markup::add(a, b, budget),
        (Binary::Add, JinjaValue::List(x), JinjaValue::List(y))
            if x.is_tuple == y.is_tuple && x.had.is_none() && y.had.is_none() =>
        {
            let mut items = Items::new(budget);
            items.extend(x)?;
            items.extend(y)?;
            if x.is_tuple { items.tuple() } else { items.list() }
        }
        (Binary::Mul, JinjaValue::Text(_) | JinjaValue::List(_), n) if n.as_int().is_some() => repeat(a, n, budget),
        (Binary::Mul, n, JinjaValue::Text(_) | JinjaValue::List(_)) if n.as_int().is_some() => repeat(b, n, budget),
        (Binary::Rem, JinjaValue::Text(pattern), _) => format::percent(pattern, a.text_kind(), b, budget),
        _ => number(op, a, b),
    }
}

fn repeat(value: &JinjaValue, times: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if matches!(value, JinjaValue::List(list) if list.had.is_some()) {
        return Err(Fault::wrong("an iterator cannot be repeated"));
    }
    let times = times.as_int().unwrap_or(0).max(0);
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    if let JinjaValue::List(list) = value {
        let mut items = Items::new(budget);
        let times = if list.is_empty() { 0 } else { times };
        (0..times).try_for_each(|_| items.extend(list))?;
        return if list.is_tuple { items.tuple() } else { items.list() };
    }
    let text = value.as_str().unwrap_or_default();
    let mut out = BudgetedWriter::new(budget)?;
    out.repeat(text, if text.is_empty() { 0 } else { times })?;
    Ok(JinjaValue::written_as(value.text_kind(), out))
}

fn number(op: Binary, a: &JinjaValue, b: &JinjaValue) -> JinjaResult<JinjaValue> {
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int())
        && op != Binary::Div
        && !(op == Binary::Pow && y < 0)
    {
        return integers(op, x, y);
    }
    let (Some(x), Some(y)) = (a.as_float(), b.as_float()) else {
        return Err(Fault::wrong(format!("{op:?} of a {} and a {} is not possible", a.kind(), b.kind())));
    };
    let by_zero = y == 0.0 && matches!(op, Binary::Div | Binary::FloorDiv | Binary::Rem);
    if by_zero || op == Binary::Pow && x == 0.0 && y < 0.0 {
        return Err(Fault::wrong("division by zero"));
    }
    Ok(JinjaValue::Float(match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::FloorDiv => (x / y).floor(),
        Binary::Rem => x - y * (x / y).floor(),
        _ => x.powf(y),
    }))
}

fn integers(op: Binary, x: i128, y: i128) -> JinjaResult<JinjaValue> {
    if y == 0 && matches!(op, Binary::FloorDiv | Binary::Rem) {
        return Err(Fault::wrong("division by zero"));
    }
    let floored = || x.checked_div(y).map(|q| if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q });
    let value = match op {
        Binary::Add => x.checked_add(y),
        Binary::Sub => x.checked_sub(y),
        Binary::Mul => x.checked_mul(y),
        Binary::FloorDiv => floored(),
        Binary::Rem => floored().and_then(|q| x.checked_sub(q.checked_mul(y)?)),
        _ => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
    };
    value.map(JinjaValue::Int).ok_or_else(|| Fault::wrong("an integer has more than 128 bits"))
}

/// `a == b`. Walks as far as both agree.
pub(super) fn equal(a: &JinjaValue, b: &JinjaValue, budget: &RenderBudget) -> JinjaResult<bool> {
    budget.work(1)?;
    Ok(match (a, b) {
        (JinjaValue::Undefined(_), JinjaValue::Undefined(_)) | (JinjaValue::None, JinjaValue::None) => true,
        (JinjaValue::Text(x), JinjaValue::Text(y)) => {
            Rc::ptr_eq(x, y)
                || x.len() == y.len() && {
                    budget.read(x.len())?;
                    x[..] == y[..]
                }
        }
        (JinjaValue::List(x), JinjaValue::List(y)) => {
            if Rc::ptr_eq(x, y) {
                return Ok(true);
            }
            if x.is_tuple != y.is_tuple || x.len() != y.len() || x.had.is_some() || y.had.is_some() {
                return Ok(false);
            }
            for (x, y) in x.iter().zip(y.iter()) {
                if !equal(x, y, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (JinjaValue::Dict(x), JinjaValue::Dict(y)) => {
            if Rc::ptr_eq(x, y) {
                return Ok(true);
            }
            if x.entries().len() != y.entries().len() {
                return Ok(false);
            }
            for (key, value) in x.entries() {
                match entry(y.entries(), key, budget)? {
                    Some(other) if equal(value, &other, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (JinjaValue::Digits(x), JinjaValue::Digits(y)) => {
            budget.read(x.len())?;
            x[..] == y[..]
        }
        (JinjaValue::Digits(_), JinjaValue::Int(_)) | (JinjaValue::Int(_), JinjaValue::Digits(_)) => false,
        (JinjaValue::Namespace(x), JinjaValue::Namespace(y)) => Rc::ptr_eq(x, y),
        (JinjaValue::Macro(x), JinjaValue::Macro(y)) => Rc::ptr_eq(x, y),
        (JinjaValue::Loop(x), JinjaValue::Loop(y)) => Rc::ptr_eq(x, y),
        (JinjaValue::Helper(x), JinjaValue::Helper(y)) => Rc::ptr_eq(x, y),
        (JinjaValue::Function(x), JinjaValue::Function(y)) => x == y,
        _ => match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => x == y,
            _ => matches!((a.as_float(), b.as_float()), (Some(x), Some(y)) if x == y),
        },
    })
}

/// Which of two values comes first.
pub(super) fn order(a: &JinjaValue, b: &JinjaValue, budget: &RenderBudget) -> JinjaResult<Ordering> {
    budget.work(1)?;
    match (a, b) {
        (JinjaValue::Text(x), JinjaValue::Text(y)) => {
            budget.read(x.len().min(y.len()))?;
            return Ok(x[..].cmp(&y[..]));
        }
        (JinjaValue::List(x), JinjaValue::List(y))
            if x.is_tuple == y.is_tuple && x.had.is_none() && y.had.is_none() =>
        {
            for (x, y) in x.iter().zip(y.iter()) {
                if !equal(x, y, budget)? {
                    return order(x, y, budget);
                }
            }
            return Ok(x.len().cmp(&y.len()));
        }
        _ => {}
    }
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        return Ok(x.cmp(&y));
    }
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => Ok(x.partial_cmp(&y).unwrap_or(Ordering::Greater)),
        _ => Err(a
            .undefined_fault()
            .or_else(|| b.undefined_fault())
            .unwrap_or_else(|| Fault::wrong(format!("a {} and a {} have no order", a.kind(), b.kind())))),
    }
}

/// A stable sort by an order that may fail, and that may be none (a NaN is not ordered): runs are merged.
pub(super) fn sort_by<T: Clone>(
    items: &mut Vec<T>,
    mut order: impl FnMut(&T, &T) -> JinjaResult<Ordering>,
) -> JinjaResult<()> {
    let mut width = 1;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for run in items.chunks(2 * width) {
            let (left, right) = run.split_at(width.min(run.len()));
            let (mut l, mut r) = (0, 0);
            while l < left.len() && r < right.len() {
                let take_right = order(&right[r], &left[l])? == Ordering::Less;
                merged.push(if take_right { right[r].clone() } else { left[l].clone() });
                (l, r) = if take_right { (l, r + 1) } else { (l + 1, r) };
            }
            merged.extend_from_slice(&left[l..]);
            merged.extend_from_slice(&right[r..]);
        }
        *items = merged;
        width *= 2;
    }
    Ok(())
}

/// `item in container`.
pub(super) fn contains(container: &JinjaValue, item: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<bool> {
    match (container, item) {
        (JinjaValue::Text(text), JinjaValue::Text(part)) => {
            budget.read(text.len() + part.len())?;
            Ok(text.contains(&part[..]))
        }
        (JinjaValue::Text(_), other) => Err(other
            .undefined_fault()
            .unwrap_or_else(|| Fault::wrong(format!("a string can contain strings, and not a {}", other.kind())))),
        (JinjaValue::Dict(dict), key) => Ok(entry(dict.entries(), key, budget)?.is_some()),
        // An iterator is read as far as the item is.
        (JinjaValue::List(list), _) if list.had.is_some() => {
            let had = list.had.as_ref().map_or(0, Cell::get);
            for (at, other) in list.iter().enumerate().skip(had) {
                list.had.iter().for_each(|had| had.set(at + 1));
                if equal(other, item, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => {
            for other in container.iterate(budget)?.iter() {
                if equal(other, item, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// The value of a key.
pub(super) fn entry(
    entries: &[(JinjaValue, JinjaValue)],
    key: &JinjaValue,
    budget: &RenderBudget,
) -> JinjaResult<Option<JinjaValue>> {
    budget.work(entries.len() / 8)?;
    for (found, value) in entries {
        // Keys of text are by far the most, and mostly differ in their length.
        let same = match (found, key) {
            (JinjaValue::Text(x), JinjaValue::Text(y)) if x.len() != y.len() => false,
            _ => equal(found, key, budget)?,
        };
        if same {
            return Ok(Some(value.clone()));
        }
    }
    Ok(None)
}

/// The value of a key that is text.
pub(super) fn entry_of(
    entries: &[(JinjaValue, JinjaValue)],
    key: &str,
    budget: &RenderBudget,
) -> JinjaResult<Option<JinjaValue>> {
    budget.work(1 + entries.len() / 8)?;
    let found = entries.iter().find(|(found, _)| found.as_str() == Some(key));
    Ok(found.map(|(_, value)| value.clone()))
}

/// `of[index]`; undefined where there is no such item.
pub(super) fn item(of: &JinjaValue, index: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if let Some(fault) = of.undefined_fault() {
        return Err(fault);
    }
    let missing = || JinjaValue::Undefined(index.as_str().map(JinjaName::from));
    let found = match (of, index) {
        (JinjaValue::Dict(dict), _) => entry(dict.entries(), index, budget)?,
        (JinjaValue::List(list), _) if list.had.is_none() => match index.as_int() {
            Some(at) => from_end(at, list.len()).and_then(|at| list.get(at)).cloned(),
            None => None,
        },
        (JinjaValue::Text(text), _) => match index.as_int() {
            Some(at) => {
                let len = of.len(budget)?;
                let c = from_end(at, len).and_then(|at| text.chars().nth(at));
                c.map(|c| JinjaValue::text_as(of.text_kind(), budget, c.encode_utf8(&mut [0; 4]))).transpose()?
            }
            None => None,
        },
        _ => None,
    };
    Ok(found.unwrap_or_else(missing))
}

/// An index that may count from the end.
fn from_end(at: i128, len: usize) -> Option<usize> {
    usize::try_from(if at < 0 { at + len as i128 } else { at }).ok()
}

/// `of[start:stop:step]`.
pub(super) fn slice(of: &JinjaValue, ends: [JinjaValue; 3], budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if let Some(fault) = of.undefined_fault() {
        return Err(fault);
    }
    let [start, stop, step] = ends;
    let bound = |value: &JinjaValue| match value {
        JinjaValue::None => Ok(None),
        other => other
            .as_int()
            .map(Some)
            .ok_or_else(|| Fault::wrong(format!("a slice is bounded by integers, and not by a {}", other.kind()))),
    };
    let (start, stop, step) = (bound(&start)?, bound(&stop)?, bound(&step)?.unwrap_or(1));
    let len = of.len(budget)? as i128;
    let clamp = |at: i128, low: i128, high: i128| if at < 0 { at + len } else { at }.clamp(low, high);
    let (first, last) = match step {
        0 => return Err(Fault::wrong("the step of a slice is 0")),
        1.. => (start.map_or(0, |at| clamp(at, 0, len)), stop.map_or(len, |at| clamp(at, 0, len))),
        _ => (start.map_or(len - 1, |at| clamp(at, -1, len - 1)), stop.map_or(-1, |at| clamp(at, -1, len - 1))),
    };
    if let (JinjaValue::Text(text), 1) = (of, step) {
        let byte = |at: i128| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
        return JinjaValue::text_as(of.text_kind(), budget, &text[byte(first)..byte(last.max(first))]);
    }
    let span = if step > 0 { last - first } else { first - last };
    let count = usize::try_from(span.max(0) / step.saturating_abs() + 1).unwrap_or(usize::MAX);
    let _held = budget.reserve(count.saturating_mul(size_of::<usize>()))?;
    let mut taken = Vec::with_capacity(count);
    let mut at = first;
    while if step > 0 { at < last } else { at > last } {
        taken.push(at as usize);
        budget.work(1)?;
        at = at.saturating_add(step);
    }
    pick(of, &taken, budget)
}

fn pick(of: &JinjaValue, taken: &[usize], budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    match of {
        JinjaValue::List(list) => {
            let mut items = Items::new(budget);
            taken.iter().try_for_each(|&at| items.push(list[at].clone()))?;
            if list.is_tuple { items.tuple() } else { items.list() }
        }
        JinjaValue::Text(text) => {
            let _held = budget.reserve(4 * text.len())?;
            let chars: Vec<char> = text.chars().collect();
            let mut out = BudgetedWriter::new(budget)?;
            taken.iter().try_for_each(|&at| out.push(chars[at]))?;
            Ok(JinjaValue::written_as(of.text_kind(), out))
        }
        other => Err(Fault::wrong(format!("a {} cannot be sliced", other.kind()))),
    }
}
