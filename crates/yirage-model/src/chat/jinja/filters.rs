//! Filters (`x | name`): the table of all, and those of no particular type.

use std::rc::Rc;

use super::args::{Args, int, needed, text};
use super::ast::JinjaName;
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::markup::{self, TextKind};
use super::ops;
use super::python::{self, JsonDumpOptions};
use super::render::Rendering;
use super::value::JinjaValue;
use super::{filters_html, filters_list, filters_text, format};
use crate::chat::limits;

const NAMES: [&str; 12] =
    ["abs", "attr", "d", "default", "float", "format", "int", "round", "safe", "string", "tojson", "pprint"];

/// Whether there is such a filter.
pub(super) fn exists(name: &str) -> bool {
    let others: [&[&str]; 3] = [&filters_html::NAMES, &filters_list::NAMES, &filters_text::NAMES];
    NAMES.contains(&name) || others.iter().any(|names| names.contains(&name))
}

/// `value | name(args)`.
pub(super) fn apply(rendering: &mut Rendering, name: &str, value: JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
    let budget = Rc::clone(&rendering.budget);
    if filters_list::NAMES.contains(&name) {
        return filters_list::apply(rendering, name, value, args);
    }
    if filters_text::NAMES.contains(&name) {
        return filters_text::apply(name, value, args, &budget);
    }
    if filters_html::NAMES.contains(&name) {
        return filters_html::apply(name, value, args, &budget);
    }
    match name {
        "default" | "d" => {
            let [default, boolean] = args.bind(name, ["default_value", "boolean"])?;
            let missing = value.is_undefined() || boolean.is_some_and(|b| b.is_true()) && !value.is_true();
            if missing { default.map_or_else(|| JinjaValue::text(&budget, ""), Ok) } else { Ok(value) }
        }
        "tojson" => to_json(&value, args, &budget),
        "string" => {
            let [] = args.bind(name, [])?;
            python::to_text(&value, &budget)
        }
        "safe" => {
            let [] = args.bind(name, [])?;
            markup::of_kind(TextKind::Markup, &value, &budget)
        }
        "pprint" => {
            let [] = args.bind(name, [])?;
            let mut out = BudgetedWriter::new(&budget)?;
            python::repr(&value, &mut out)?;
            Ok(JinjaValue::written(out))
        }
        "attr" => {
            let [attr] = args.bind(name, ["name"])?;
            let attr = needed(attr, name, "name")?;
            let attr = JinjaName::from(text(&attr, name)?);
            // Only attributes count here, and no keys.
            match &value {
                JinjaValue::Dict(_) => Ok(JinjaValue::Undefined(Some(attr))),
                _ => rendering.attr(&value, &attr),
            }
        }
        "abs" => {
            let [] = args.bind(name, [])?;
            match (&value, value.as_int()) {
                (JinjaValue::Digits(digits), _) => JinjaValue::integer(&budget, digits.trim_start_matches('-')),
                (JinjaValue::Float(value), _) => Ok(JinjaValue::Float(value.abs())),
                (_, Some(value)) => Ok(JinjaValue::Int(value.saturating_abs())),
                _ => Err(not_a_number(name, &value)),
            }
        }
        "int" => to_int(&value, args, &budget),
        "float" => {
            let [default] = args.bind(name, ["default"])?;
            if let Some(fault) = value.undefined_fault() {
                return Err(fault);
            }
            let parsed = match &value {
                JinjaValue::Text(text) => text.trim().parse().ok(),
                other => other.as_float(),
            };
            Ok(parsed.map_or_else(|| default.unwrap_or(JinjaValue::Float(0.0)), JinjaValue::Float))
        }
        "round" => round(&value, args),
        "format" => {
            let pattern = python::to_text(&value, &budget)?;
            let values = match (args.plain.is_empty(), args.named.is_empty()) {
                (_, true) => JinjaValue::list(&budget, args.plain, true)?,
                (true, false) => {
                    let named =
                        args.named.into_iter().map(|(name, value)| Ok((JinjaValue::text(&budget, &name)?, value)));
                    JinjaValue::dict(&budget, named.collect::<JinjaResult<_>>()?)?
                }
                _ => return Err(Fault::wrong("`format` takes values by their place or by their name, not both")),
            };
            format::percent(pattern.as_str().unwrap_or_default(), pattern.text_kind(), &values, &budget)
        }
        _ => Err(Fault::wrong(format!("there is no filter `{name}`"))),
    }
}

fn not_a_number(name: &str, value: &JinjaValue) -> Fault {
    let wrong = || Fault::wrong(format!("`{name}` takes a number, and not a value of kind {}", value.kind()));
    value.undefined_fault().unwrap_or_else(wrong)
}

/// What a float may be to become an integer of 128 bits.
const MAX_INT: f64 = 1e38;

fn to_int(value: &JinjaValue, args: Args, budget: &RenderBudget) -> JinjaResult<JinjaValue> {
    let [default, base] = args.bind("int", ["default", "base"])?;
    if let Some(fault) = value.undefined_fault() {
        return Err(fault);
    }
    if let JinjaValue::Digits(_) = value {
        return Ok(value.clone());
    }
    let base = u32::try_from(int(base.as_ref(), 10, "int")?).unwrap_or(0);
    let parsed = match value {
        JinjaValue::Text(text) if text.len() > limits::MAX_FIELD => None,
        JinjaValue::Text(text) if (2..=36).contains(&base) => {
            budget.read(text.len())?;
            let digits = text.trim().to_ascii_lowercase().replace('_', "");
            let digits = match base {
                16 => digits.strip_prefix("0x").unwrap_or(&digits),
                8 => digits.strip_prefix("0o").unwrap_or(&digits),
                2 => digits.strip_prefix("0b").unwrap_or(&digits),
                _ => &digits,
            };
            let whole = i128::from_str_radix(digits, base).ok();
            whole.or_else(|| digits.parse::<f64>().ok().filter(|v| v.abs() < MAX_INT).map(|v| v as i128))
        }
        JinjaValue::Text(_) => return Err(Fault::wrong("`int` takes a base from 2 to 36")),
        JinjaValue::Float(value) if value.abs() < MAX_INT => Some(*value as i128),
        JinjaValue::Float(value) if value.is_finite() => return Err(Fault::wrong("an integer has more than 128 bits")),
        other => other.as_int(),
    };
    Ok(parsed.map_or_else(|| default.unwrap_or(JinjaValue::Int(0)), JinjaValue::Int))
}

/// Half goes to even, as Python's `round` does.
fn round(value: &JinjaValue, args: Args) -> JinjaResult<JinjaValue> {
    let [precision, method] = args.bind("round", ["precision", "method"])?;
    let precision = int(precision.as_ref(), 0, "round")?.clamp(-400, 400) as i32;
    let number = value.as_float().ok_or_else(|| not_a_number("round", value))?;
    let method = method.as_ref().map_or(Ok("common"), |method| text(method, "round"))?;
    let scale = 10f64.powi(precision);
    let rounded = match method {
        "common" if precision == 0 => number.round_ties_even(),
        // The written form decides, as it does in Python: 2.675 is below its half.
        "common" if (1..=300).contains(&precision) => {
            format!("{number:.*}", precision as usize).parse().unwrap_or(number)
        }
        "common" => (number * scale).round_ties_even() / scale,
        // They are integers in between, which have no negative zero.
        "ceil" => ((number * scale).ceil() + 0.0) / scale,
        "floor" => ((number * scale).floor() + 0.0) / scale,
        other => return Err(Fault::wrong(format!("`round` has no method `{other}`"))),
    };
    match value.as_int() {
        Some(whole) if method == "common" && precision >= 0 => Ok(JinjaValue::Int(whole)),
        Some(whole) if method == "common" => Ok(JinjaValue::Int(rounded_to(whole, precision.unsigned_abs()))),
        _ => Ok(JinjaValue::Float(rounded)),
    }
}

/// An integer with so many zeros at its end.
fn rounded_to(whole: i128, zeros: u32) -> i128 {
    let Some(unit) = 10i128.checked_pow(zeros) else { return 0 };
    let (below, part) = (whole.div_euclid(unit), whole.rem_euclid(unit));
    let up = match part.cmp(&(unit - part)) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => below % 2 != 0,
        std::cmp::Ordering::Greater => true,
    };
    (below + i128::from(up)).checked_mul(unit).unwrap_or(whole)
}

/// `tojson` as model authors have it: `json.dumps` without HTML escapes.
fn to_json(value: &JinjaValue, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let params = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ensure_ascii, indent, separators, sort_keys] = args.bind("tojson", params)?;
    let indent = match indent.filter(|indent| !matches!(indent, JinjaValue::None)) {
        None => None,
        Some(JinjaValue::Text(text)) => Some(text.to_string()),
        Some(count) => {
            let count = int(Some(&count), 0, "tojson")?.max(0);
            let count = usize::try_from(count).ok().filter(|count| *count <= limits::MAX_FIELD);
            Some(" ".repeat(count.ok_or_else(|| Fault::limit("indent of JSON", limits::MAX_FIELD as u64))?))
        }
    };
    let separators = match separators.filter(|separators| !matches!(separators, JinjaValue::None)) {
        Some(pair) => match &pair.iterate(budget)?[..] {
            [item, key] => (text(item, "tojson")?.to_owned(), text(key, "tojson")?.to_owned()),
            _ => return Err(Fault::wrong("the separators of `tojson` are not a pair")),
        },
        None => ((if indent.is_some() { "," } else { ", " }).to_owned(), ": ".to_owned()),
    };
    let is_true = |value: Option<JinjaValue>| value.is_some_and(|value| value.is_true());
    let layout =
        JsonDumpOptions { indent, separators, sort_keys: is_true(sort_keys), ensure_ascii: is_true(ensure_ascii) };
    let mut out = BudgetedWriter::new(budget)?;
    layout.dump(value, 0, &mut out)?;
    Ok(JinjaValue::written(out))
}

/// The value at a path of attributes and indices with dots in between.
pub(super) fn path(rendering: &Rendering, value: &JinjaValue, path: &JinjaValue) -> JinjaResult<JinjaValue> {
    if let JinjaValue::Int(_) = path {
        return ops::item(value, path, &rendering.budget);
    }
    let mut found = value.clone();
    for part in text(path, "attribute")?.split('.') {
        rendering.budget.work(1)?;
        let index = match part.parse::<u32>() {
            Ok(index) => JinjaValue::Int(index.into()),
            Err(_) => JinjaValue::text(&rendering.budget, part)?,
        };
        found = rendering.item(&found, &index)?;
    }
    Ok(found)
}
