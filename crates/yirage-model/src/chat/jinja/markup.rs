//! Texts that count as HTML already, as the library markupsafe has them: `safe` and `escape` make them, and what is added
//! to one, put into it or joined by it is escaped. Nothing else escapes: transformers has no automatic escaping. This
//! module does not know which filters and operators ask for it.

use std::rc::Rc;

use super::args::{Args, needed};
use super::budget::{BudgetedWriter, RenderBudget};
use super::fault::JinjaResult;
use super::filters_html;
use super::methods_text;
use super::python;
use super::value::{Items, JinjaValue};

/// Whether a text is any text, or counts as HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Plain,
    Markup,
}

/// Methods that only markup has.
const NAMES: [&str; 3] = ["escape", "striptags", "unescape"];

pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Writes a text as HTML.
pub(super) fn escape(text: &str, out: &mut BudgetedWriter) -> JinjaResult<()> {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;")?,
            '<' => out.push_str("&lt;")?,
            '>' => out.push_str("&gt;")?,
            '"' => out.push_str("&#34;")?,
            '\'' => out.push_str("&#39;")?,
            c => out.push(c)?,
        }
    }
    Ok(())
}

/// Writes `value` into markup: markup as it is, everything else escaped.
pub(super) fn write(value: &JinjaValue, out: &mut BudgetedWriter) -> JinjaResult<()> {
    if value.text_kind() == TextKind::Markup {
        return python::str(value, out);
    }
    let text = python::to_text(value, &Rc::clone(out.budget()))?;
    escape(text.as_str().unwrap_or_default(), out)
}

/// `value` as markup.
pub(super) fn escaped(value: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    write(value, &mut out)?;
    Ok(JinjaValue::written_as(TextKind::Markup, out))
}

/// `value` as text of a kind, with the same characters.
pub(super) fn of_kind(kind: TextKind, value: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    if value.as_str().is_some() && value.text_kind() == kind {
        return Ok(value.clone());
    }
    let mut out = BudgetedWriter::new(budget)?;
    python::str(value, &mut out)?;
    Ok(JinjaValue::written_as(kind, out))
}

/// `a + b` of texts.
pub(super) fn add(a: &JinjaValue, b: &JinjaValue, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let mut out = BudgetedWriter::new(budget)?;
    if a.text_kind() == TextKind::Plain && b.text_kind() == TextKind::Plain {
        python::str(a, &mut out)?;
        python::str(b, &mut out)?;
        return Ok(JinjaValue::written(out));
    }
    write(a, &mut out)?;
    write(b, &mut out)?;
    Ok(JinjaValue::written_as(TextKind::Markup, out))
}

/// Calls a method of markup: that of any text, over arguments that are escaped, and with markup as what comes out.
pub(super) fn call(of: &JinjaValue, name: &str, args: Args, budget: &Rc<RenderBudget>) -> JinjaResult<JinjaValue> {
    let this = of.as_str().unwrap_or_default();
    let Args { mut plain, mut named } = args;
    match name {
        "escape" => {
            let [value] = Args { plain, named }.bind(name, ["s"])?;
            return escaped(&needed(value, name, "s")?, budget);
        }
        "striptags" | "unescape" => {
            let [] = Args { plain, named }.bind(name, [])?;
            budget.read(this.len())?;
            return match name {
                "striptags" => filters_html::without_tags(this, budget),
                _ => filters_html::unescaped(this, budget),
            };
        }
        "replace" | "center" | "ljust" | "rjust" => {
            if let Some(put_in) = plain.get_mut(1) {
                *put_in = escaped(put_in, budget)?;
            }
            for (_, put_in) in named.iter_mut().filter(|(name, _)| matches!(&**name, "new" | "fillchar")) {
                *put_in = escaped(put_in, budget)?;
            }
        }
        "join" => {
            if let Some(parts) = plain.first_mut() {
                let mut items = Items::new(budget);
                parts.iterate(budget)?.iter().try_for_each(|part| items.push(escaped(part, budget)?))?;
                *parts = items.list()?;
            }
        }
        _ => {}
    }
    let found = methods_text::call(this, of, name, Args { plain, named }, budget)?;
    match &found {
        JinjaValue::Text(_) => of_kind(TextKind::Markup, &found, budget),
        JinjaValue::List(list) => {
            let mut items = Items::new(budget);
            list.iter().try_for_each(|part| items.push(of_kind(TextKind::Markup, part, budget)?))?;
            if list.is_tuple { items.tuple() } else { items.list() }
        }
        _ => Ok(found),
    }
}
