//! `"%s" % value` and `"{}".format(value)`, with fields that are bounded.

use std::rc::Rc;

use super::args::Args;
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::markup::{self, TextKind};
use super::ops;
use super::python;
use super::value::JinjaValue;
use crate::chat::limits;

/// What a field asks for.
#[derive(Debug, Default)]
struct FormatSpec {
    fill: Option<char>,
    /// `<`, `>` or `^`.
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    comma: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
}

impl FormatSpec {
    /// Whether it asks for anything.
    fn asks(&self) -> bool {
        let shape = self.fill.or(self.align).or(self.sign).or(self.kind).is_some() || self.precision.is_some();
        shape || self.alternate || self.zero || self.comma || self.width > 0
    }
}

/// Reads a number that bounds a field.
fn bounded(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> JinjaResult<Option<usize>> {
    let mut value: Option<usize> = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        let next = value.unwrap_or(0) * 10 + digit as usize;
        if next > limits::MAX_FIELD {
            return Err(Fault::limit("width of a formatted field", limits::MAX_FIELD as u64));
        }
        value = Some(next);
    }
    Ok(value)
}

/// `pattern % values`, in a pattern that may be markup.
pub(super) fn percent(
    pattern: &str,
    pattern_kind: TextKind,
    values: &JinjaValue,
    budget: &Rc<RenderBudget>,
) -> JinjaResult<JinjaValue> {
    let single = std::slice::from_ref(values);
    let given: &[JinjaValue] = match values {
        JinjaValue::List(list) if list.is_tuple => list,
        _ => single,
    };
    let mut given = given.iter();
    let mut named = false;
    let mut out = BudgetedWriter::new(budget)?;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c)?;
            continue;
        }
        let mut by_name = None;
        if chars.peek() == Some(&'(') {
            chars.next();
            let name: String = chars.by_ref().take_while(|&c| c != ')').collect();
            let JinjaValue::Dict(dict) = values else { return Err(Fault::wrong("`%(name)s` takes a dict")) };
            named = true;
            let found = ops::entry_of(dict.entries(), &name, budget)?;
            by_name = Some(found.ok_or_else(|| Fault::wrong(format!("`%({name})s`: there is no such key")))?);
        }
        let mut field = FormatSpec::default();
        while let Some(flag) = chars.next_if(|c| matches!(c, '-' | '+' | ' ' | '#' | '0')) {
            match flag {
                '-' => field.align = Some('<'),
                '0' => field.zero = true,
                '#' => field.alternate = true,
                sign => field.sign = Some(sign),
            }
        }
        field.width = bounded(&mut chars)?.unwrap_or(0);
        if chars.next_if_eq(&'.').is_some() {
            field.precision = Some(bounded(&mut chars)?.unwrap_or(0));
        }
        let kind = chars.next().ok_or_else(|| Fault::wrong("a format ends in `%`"))?;
        if kind == '%' {
            out.push('%')?;
            continue;
        }
        let value = match by_name.as_ref().or_else(|| given.next()) {
            Some(value) => value,
            None => return Err(Fault::wrong("a format has more fields than values")),
        };
        field.align = field.align.or(Some('>'));
        field.kind = Some(kind);
        match pattern_kind {
            TextKind::Plain => shown(value, field, true, &mut out)?,
            TextKind::Markup => {
                field.kind = if kind == 'r' { Some('s') } else { field.kind };
                shown(&in_markup(value, kind, budget)?, field, true, &mut out)?;
            }
        }
    }
    // What has keys or places may have more of them.
    let keyed = matches!(values, JinjaValue::Dict(_) | JinjaValue::Undefined(_))
        || matches!(values, JinjaValue::List(list) if !list.is_tuple);
    if !named && given.next().is_some() && !keyed {
        return Err(Fault::wrong("a format has more values than fields"));
    }
    Ok(JinjaValue::written_as(pattern_kind, out))
}

/// What a field of the letter `kind` shows of a value in markup: text is escaped, and a number is read out of a text.
fn in_markup(value: &JinjaValue, kind: char, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let wrong = || Fault::wrong(format!("a value of kind {} cannot be formatted as `{kind}`", value.kind()));
    match (kind, value) {
        ('s', _) => markup::escaped(value, budget),
        ('r', _) => {
            let mut written = BudgetedWriter::new(budget)?;
            python::repr(value, &mut written)?;
            markup::escaped(&JinjaValue::written(written), budget)
        }
        ('d' | 'i' | 'u', JinjaValue::Text(text)) => JinjaValue::integer(budget, whole(text).ok_or_else(wrong)?),
        ('e' | 'E' | 'f' | 'F' | 'g' | 'G', JinjaValue::Text(text)) => {
            text.trim().parse().map(JinjaValue::Float).map_err(|_| wrong())
        }
        ('x' | 'X' | 'o', _) => Err(wrong()),
        _ => Ok(value.clone()),
    }
}

/// The digits of a text that is a whole number.
fn whole(text: &str) -> Option<&str> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_whole.then(|| text.trim_start_matches('+'))
}

/// `pattern.format(args)`, of a pattern that may be markup.
pub(super) fn braces(
    pattern: &str,
    pattern_kind: TextKind,
    args: &Args,
    budget: &Rc<RenderBudget>,
) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    let mut next = 0;
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at])?;
        let mark = &rest[at..at + 1];
        if rest[at + 1..].starts_with(mark) {
            out.push_str(mark)?;
            rest = &rest[at + 2..];
            continue;
        }
        let end = rest[at..].find('}').filter(|_| mark == "{").map(|end| at + end);
        let end = end.ok_or_else(|| Fault::wrong("a format has a single brace"))?;
        let (path, spec) = rest[at + 1..end].split_once(':').unwrap_or((&rest[at + 1..end], ""));
        if spec.contains('{') {
            return Err(Fault::wrong("a format within a format is not supported"));
        }
        let (path, conversion) = path.split_once('!').unwrap_or((path, ""));
        let mut value = argument(path, args, &mut next, budget)?;
        if !matches!(conversion, "" | "s" | "r") {
            return Err(Fault::wrong(format!("conversion `!{conversion}` is not supported")));
        }
        if conversion == "r" {
            let mut shown = BudgetedWriter::new(budget)?;
            python::repr(&value, &mut shown)?;
            value = JinjaValue::written(shown);
        }
        if conversion == "s" {
            value = markup::of_kind(TextKind::Plain, &value, budget)?;
        }
        match pattern_kind {
            TextKind::Plain => shown(&value, spec_of(spec)?, false, &mut out)?,
            TextKind::Markup if value.text_kind() == TextKind::Markup => {
                if !spec.is_empty() {
                    return Err(Fault::wrong(format!("format `{spec}` is none for markup")));
                }
                markup::write(&value, &mut out)?;
            }
            TextKind::Markup => {
                let mut field = BudgetedWriter::new(budget)?;
                shown(&value, spec_of(spec)?, false, &mut field)?;
                markup::escape(field.as_str(), &mut out)?;
            }
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest)?;
    Ok(JinjaValue::written_as(pattern_kind, out))
}

/// The argument that a field names: by place, by name, or the next one; then keys in square brackets.
fn argument(path: &str, args: &Args, next: &mut usize, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let (head, keys) = path.split_at(path.find('[').unwrap_or(path.len()));
    if head.contains('.') {
        return Err(Fault::wrong("attributes in a format are not supported"));
    }
    budget.work(1 + args.named.len() / 8)?;
    let place = if head.is_empty() { Some(std::mem::replace(next, *next + 1)) } else { head.parse().ok() };
    let found = match place {
        Some(place) => args.plain.get(place),
        None => args.named.iter().find(|(name, _)| **name == *head).map(|(_, value)| value),
    };
    let mut value =
        found.cloned().ok_or_else(|| Fault::wrong(format!("a format names `{head}`, which is not given")))?;
    for key in keys.split_terminator(']') {
        let key = key.strip_prefix('[').ok_or_else(|| Fault::wrong("a format has a bracket too many"))?;
        let key = match key.parse::<u32>() {
            Ok(index) => JinjaValue::Int(index.into()),
            Err(_) => JinjaValue::text(budget, key)?,
        };
        value = ops::item(&value, &key, budget)?;
    }
    Ok(value)
}

fn spec_of(spec: &str) -> JinjaResult<FormatSpec> {
    let mut field = FormatSpec::default();
    let mut chars = spec.chars().peekable();
    let is_align = |c: Option<char>| matches!(c, Some('<' | '>' | '^'));
    if is_align(spec.chars().nth(1)) {
        field.fill = chars.next();
        field.align = chars.next();
    } else if is_align(spec.chars().next()) {
        field.align = chars.next();
    }
    field.sign = chars.next_if(|c| matches!(c, '+' | '-' | ' ')).filter(|&c| c != '-');
    field.alternate = chars.next_if_eq(&'#').is_some();
    field.zero = chars.next_if_eq(&'0').is_some();
    field.width = bounded(&mut chars)?.unwrap_or(0);
    field.comma = chars.next_if_eq(&',').is_some();
    if chars.next_if_eq(&'.').is_some() {
        field.precision = bounded(&mut chars)?;
    }
    field.kind = chars.next();
    match chars.next() {
        Some(_) => Err(Fault::wrong(format!("format `{spec}` is not supported"))),
        None => Ok(field),
    }
}

/// Writes a value into its field.
fn shown(value: &JinjaValue, field: FormatSpec, percent: bool, out: &mut BudgetedWriter) -> JinjaResult<()> {
    if let Some(fault) = value.undefined_fault().filter(|_| !matches!(field.kind, None | Some('s' | 'r' | 'a'))) {
        return Err(fault);
    }
    let numeric = matches!(value, JinjaValue::Int(_) | JinjaValue::Float(_))
        || matches!(value, JinjaValue::Bool(_)) && (percent || field.asks());
    if !percent && !numeric && !matches!(value, JinjaValue::Text(_)) && field.asks() {
        return Err(Fault::wrong(format!("a value of kind {} cannot be formatted in this way", value.kind())));
    }
    if !percent && field.kind == Some('s') && !matches!(value, JinjaValue::Text(_)) {
        return Err(Fault::wrong(format!("a value of kind {} cannot be formatted as `s`", value.kind())));
    }
    let (mut sign, mut body) = (String::new(), BudgetedWriter::new(out.budget())?);
    match field.kind {
        None | Some('s') if !numeric || field.kind.is_some() => {
            python::str(value, &mut body)?;
            cut(&mut body, field.precision)?;
        }
        Some('r') => {
            python::repr(value, &mut body)?;
            cut(&mut body, field.precision)?;
        }
        _ => {
            let (negative, digits) = number(value, &field, percent)?;
            sign = if negative { "-".to_owned() } else { field.sign.map(String::from).unwrap_or_default() };
            body.push_str(&digits)?;
        }
    }
    let is_number = numeric && !matches!(field.kind, Some('s' | 'r'));
    let missing = field.width.saturating_sub(sign.len() + body.as_str().chars().count());
    if field.zero && is_number && field.align != Some('<') {
        out.push_str(&sign)?;
        out.repeat("0", missing)?;
        return out.push_str(body.as_str());
    }
    let left = match field.align.unwrap_or(if is_number { '>' } else { '<' }) {
        '<' => 0,
        '^' => missing / 2,
        _ => missing,
    };
    let fill = field.fill.unwrap_or(' ').to_string();
    out.repeat(&fill, left)?;
    out.push_str(&sign)?;
    out.push_str(body.as_str())?;
    out.repeat(&fill, missing - left)
}

/// The first characters of a text.
fn cut(body: &mut BudgetedWriter, precision: Option<usize>) -> JinjaResult<()> {
    let Some(precision) = precision else { return Ok(()) };
    if let Some((at, _)) = body.as_str().char_indices().nth(precision) {
        let mut kept = BudgetedWriter::new(body.budget())?;
        kept.push_str(&body.as_str()[..at])?;
        *body = kept;
    }
    Ok(())
}

/// Whether a number is negative, and its digits.
fn number(value: &JinjaValue, field: &FormatSpec, percent: bool) -> JinjaResult<(bool, String)> {
    let kind = field.kind.unwrap_or(if value.as_int().is_some() { 'd' } else { 'g' });
    let wrong = || Fault::wrong(format!("a value of kind {} cannot be formatted as `{kind}`", value.kind()));
    if field.kind.is_none() && field.precision.is_none() && matches!(value, JinjaValue::Float(_)) {
        let float = value.as_float().unwrap_or_default();
        let digits = python::float(float.abs());
        return Ok((float.is_sign_negative(), if field.comma { thousands(&digits) } else { digits }));
    }
    match kind {
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'b' => {
            if !percent && field.precision.is_some() {
                return Err(Fault::wrong("an integer is not formatted with a precision"));
            }
            let whole = match value {
                JinjaValue::Float(float) if percent && matches!(kind, 'd' | 'i' | 'u') && float.is_finite() => {
                    *float as i128
                }
                other => other.as_int().ok_or_else(wrong)?,
            };
            let size = whole.unsigned_abs();
            let (prefix, digits) = match kind {
                'x' => ("0x", format!("{size:x}")),
                'X' => ("0X", format!("{size:X}")),
                'o' => ("0o", format!("{size:o}")),
                'b' => ("0b", format!("{size:b}")),
                _ => ("", if field.comma { thousands(&size.to_string()) } else { size.to_string() }),
            };
            Ok((whole < 0, if field.alternate { format!("{prefix}{digits}") } else { digits }))
        }
        'f' | 'F' | '%' => {
            let float = value.as_float().ok_or_else(wrong)?;
            let float = if kind == '%' { float * 100.0 } else { float };
            let digits = format!("{:.*}", field.precision.unwrap_or(6), float.abs());
            let digits = if field.comma { thousands(&digits) } else { digits };
            Ok((float.is_sign_negative(), if kind == '%' { digits + "%" } else { digits }))
        }
        'e' | 'E' | 'g' | 'G' if field.kind.is_some() && !field.alternate && !field.comma => {
            let float = value.as_float().filter(|float| float.is_finite()).ok_or_else(wrong)?;
            let precision = field.precision.unwrap_or(6);
            let digits = match kind {
                'e' | 'E' => scientific(float.abs(), precision),
                _ => general(float.abs(), precision.max(1)),
            };
            Ok((float.is_sign_negative(), if kind.is_uppercase() { digits.to_uppercase() } else { digits }))
        }
        _ => Err(Fault::wrong(format!("format `{kind}` is not supported"))),
    }
}

/// One digit, so many behind its point, and an exponent.
fn scientific(float: f64, precision: usize) -> String {
    let written = format!("{float:.precision$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    with_exponent(digits, exponent.parse().unwrap_or(0))
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// So many digits without zeros at their end, with an exponent where it is shorter so.
fn general(float: f64, precision: usize) -> String {
    let written = format!("{float:.*e}", precision - 1);
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let bare = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        return with_exponent(&bare(digits), exponent);
    }
    bare(&format!("{float:.*}", (precision as i32 - 1 - exponent).max(0) as usize))
}

fn thousands(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::new();
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + fraction
}
