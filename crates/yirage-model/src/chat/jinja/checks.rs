//! Tests (`x is name`) and comparisons.

use std::cmp::Ordering;
use std::rc::Rc;

use super::args::{Args, needed};
use super::ast::Compare;
use super::budget::RenderBudget;
use super::fault::{Fault, JinjaResult};
use super::markup::TextKind;
use super::render::Rendering;
use super::value::JinjaValue;
use super::{filters, functions, ops, python};

/// `a op b`.
pub(super) fn compare(op: Compare, a: &JinjaValue, b: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<bool> {
    Ok(match op {
        Compare::Eq => ops::equal(a, b, budget)?,
        Compare::Ne => !ops::equal(a, b, budget)?,
        Compare::In => ops::contains(b, a, budget)?,
        Compare::NotIn => !ops::contains(b, a, budget)?,
        Compare::Lt => ops::order(a, b, budget)? == Ordering::Less,
        Compare::Le => ops::order(a, b, budget)? != Ordering::Greater,
        Compare::Gt => ops::order(a, b, budget)? == Ordering::Greater,
        Compare::Ge => ops::order(a, b, budget)? != Ordering::Less,
    })
}

fn comparison(name: &str) -> Option<Compare> {
    Some(match name {
        "eq" | "equalto" | "==" => Compare::Eq,
        "ne" | "!=" => Compare::Ne,
        "lt" | "lessthan" | "<" => Compare::Lt,
        "le" | "<=" => Compare::Le,
        "gt" | "greaterthan" | ">" => Compare::Gt,
        "ge" | ">=" => Compare::Ge,
        "in" => Compare::In,
        _ => return None,
    })
}

/// Whether `value is name(args)`.
pub(super) fn check(rendering: &Rendering, name: &str, value: &JinjaValue, args: Args) -> JinjaResult<bool> {
    let budget = &rendering.budget;
    if let Some(op) = comparison(name) {
        let [other] = args.bind(name, ["other"])?;
        return compare(op, value, &needed(other, name, "other")?, budget);
    }
    match name {
        "divisibleby" => {
            let [by] = args.bind(name, ["num"])?;
            let by = needed(by, name, "num")?;
            return match (value.as_int().zip(by.as_int()), value.as_float().zip(by.as_float())) {
                (Some((value, by)), _) if by != 0 => Ok(value.checked_rem(by) == Some(0)),
                (None, Some((value, by))) if by != 0.0 => Ok(value % by == 0.0),
                _ => Err(Fault::wrong("`divisibleby` takes numbers, and not 0")),
            };
        }
        "sameas" => {
            let [other] = args.bind(name, ["other"])?;
            let other = needed(other, name, "other")?;
            let same_kind = value.kind() == other.kind() && value.text_kind() == other.text_kind();
            return Ok(same_kind && ops::equal(value, &other, budget)?);
        }
        _ => {}
    }
    let [] = args.bind(name, [])?;
    let remainder = || {
        let fault = || Fault::wrong(format!("`{name}` takes a number, and not a value of kind {}", value.kind()));
        let whole = value.as_int().map(|value| value.rem_euclid(2) as f64);
        let number = whole.or_else(|| value.as_float().map(|value| value.rem_euclid(2.0)));
        number.ok_or_else(|| value.undefined_fault().unwrap_or_else(fault))
    };
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => matches!(value, JinjaValue::None),
        "boolean" => matches!(value, JinjaValue::Bool(_)),
        "true" => matches!(value, JinjaValue::Bool(true)),
        "false" => matches!(value, JinjaValue::Bool(false)),
        "integer" => matches!(value, JinjaValue::Int(_) | JinjaValue::Digits(_)),
        "float" => matches!(value, JinjaValue::Float(_)),
        "number" => {
            matches!(value, JinjaValue::Int(_) | JinjaValue::Digits(_) | JinjaValue::Float(_) | JinjaValue::Bool(_))
        }
        "string" => matches!(value, JinjaValue::Text(_)),
        "mapping" => matches!(value, JinjaValue::Dict(_)),
        "sequence" if value.kind() == "iterator" => false,
        "sequence" => {
            matches!(value, JinjaValue::Text(_) | JinjaValue::List(_) | JinjaValue::Dict(_) | JinjaValue::Undefined(_))
        }
        "iterable" => {
            matches!(value, JinjaValue::Text(_) | JinjaValue::List(_) | JinjaValue::Dict(_) | JinjaValue::Undefined(_))
        }
        "callable" => matches!(
            value,
            JinjaValue::Macro(_) | JinjaValue::Function(_) | JinjaValue::Method(_) | JinjaValue::Loop(_)
        ),
        "escaped" => value.text_kind() == TextKind::Markup,
        "odd" => remainder()? == 1.0,
        "even" => remainder()? == 0.0,
        "lower" | "upper" => {
            let written = python::to_text(value, budget)?;
            let text = written.as_str().unwrap_or_default();
            budget.read(text.len())?;
            let wrong = |c: char| if name == "lower" { c.is_uppercase() } else { c.is_lowercase() };
            text.chars().any(char::is_alphabetic) && !text.chars().any(wrong)
        }
        "filter" => value.as_str().is_some_and(filters::exists),
        "test" => value.as_str().is_some_and(exists),
        "function" => value.as_str().is_some_and(functions::exists),
        _ => return Err(Fault::wrong(format!("there is no test `{name}`"))),
    })
}

fn exists(name: &str) -> bool {
    const NAMES: [&str; 23] = [
        "divisibleby",
        "sameas",
        "defined",
        "undefined",
        "none",
        "boolean",
        "true",
        "false",
        "integer",
        "float",
        "number",
        "string",
        "mapping",
        "sequence",
        "iterable",
        "callable",
        "escaped",
        "odd",
        "even",
        "lower",
        "upper",
        "filter",
        "test",
    ];
    comparison(name).is_some() || NAMES.contains(&name)
}
