//! Values of a template. Nothing changes once it is built, namespaces aside, so values have no cycles; each knows how
//! deep it nests, so that whatever walks it recurses a bounded number of times.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{JinjaForLoop, JinjaName, Macro};
use super::budget::{BudgetReservation, BudgetedWriter, RenderBudget};
use super::fault::{Fault, JinjaResult};
use super::markup::TextKind;
use crate::chat::limits;

#[derive(Clone, Debug)]
pub(super) enum JinjaValue {
    /// What a name without a value gives; the name, for messages.
    Undefined(Option<JinjaName>),
    None,
    Bool(bool),
    Int(i128),
    /// The digits of an integer that has more than 128 bits: it can be written and compared, and nothing is reckoned
    /// with it as an integer.
    Digits(Rc<JinjaString>),
    Float(f64),
    Text(Rc<JinjaString>),
    List(Rc<JinjaList>),
    Dict(Rc<Dict>),
    Namespace(Rc<Namespace>),
    Macro(Rc<Closure>),
    Loop(Rc<Loop>),
    Helper(Rc<Helper>),
    Method(Rc<Method>),
    /// A function of the surroundings.
    Function(JinjaName),
}

#[derive(Debug)]
pub(super) struct JinjaString {
    text: Box<str>,
    kind: TextKind,
    _held: BudgetReservation,
}

/// A list, tuple or iterator.
#[derive(Debug)]
pub(super) struct JinjaList {
    items: Vec<JinjaValue>,
    pub(super) is_tuple: bool,
    /// What a lazy filter gives: it is always true, has no length and no places, and its items can be had once. How many
    /// were had.
    pub(super) had: Option<Cell<usize>>,
    depth: u32,
    _held: BudgetReservation,
}

/// Keys and values in the order they were written.
#[derive(Debug)]
pub(super) struct Dict {
    entries: Vec<(JinjaValue, JinjaValue)>,
    depth: u32,
    _held: BudgetReservation,
}

/// The only value that changes. The rendering owns all of them and empties them at its end, so that cycles end too.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) entries: RefCell<Vec<(JinjaName, JinjaValue)>>,
    pub(super) _held: BudgetReservation,
}

/// A macro and the variables around it where it was made.
#[derive(Debug)]
pub(super) struct Closure {
    pub(super) decl: Arc<Macro>,
    pub(super) around: Vec<(JinjaName, JinjaValue)>,
    /// It was made within another block, and so can only be known to itself by itself.
    pub(super) nested: bool,
    depth: u32,
    _held: BudgetReservation,
}

/// A method and the value it belongs to.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) of: JinjaValue,
    pub(super) name: JinjaName,
    depth: u32,
    _held: BudgetReservation,
}

/// The variable `loop`.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) items: Rc<JinjaList>,
    pub(super) at: Cell<usize>,
    /// Loops of the same recursion around this one.
    pub(super) depth: usize,
    pub(super) decl: Arc<JinjaForLoop>,
    pub(super) changed: RefCell<Option<Vec<JinjaValue>>>,
    /// The loop is over: nothing is kept in it any more.
    pub(super) over: Cell<bool>,
    pub(super) _held: BudgetReservation,
}

/// What `cycler` and `joiner` give.
#[derive(Debug)]
pub(super) struct Helper {
    pub(super) kind: HelperKind,
    pub(super) at: Cell<usize>,
    depth: u32,
    _held: BudgetReservation,
}

#[derive(Debug)]
pub(super) enum HelperKind {
    Cycler(Rc<JinjaList>),
    Joiner(JinjaValue),
}

/// Bytes of one value in a list, and of what a list takes beside its items.
const ITEM_BYTES: usize = size_of::<JinjaValue>();
const LIST_BYTES: usize = 96;

impl std::ops::Deref for JinjaString {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl std::ops::Deref for JinjaList {
    type Target = [JinjaValue];

    fn deref(&self) -> &[JinjaValue] {
        &self.items
    }
}

impl Dict {
    pub(super) fn entries(&self) -> &[(JinjaValue, JinjaValue)] {
        &self.entries
    }
}

fn checked_depth(below: u32) -> JinjaResult<u32> {
    if below >= limits::MAX_VALUE_DEPTH {
        return Err(Fault::limit("depth of a value", limits::MAX_VALUE_DEPTH.into()));
    }
    Ok(below + 1)
}

/// Items of a list to be, whose bytes are taken one by one.
pub(super) struct Items {
    items: Vec<JinjaValue>,
    held: Vec<BudgetReservation>,
    budget: Rc<RenderBudget>,
    paid: usize,
}

impl Items {
    pub(super) fn new(budget: &Rc<RenderBudget>) -> Self {
        Self { items: Vec::new(), held: Vec::new(), budget: Rc::clone(budget), paid: 0 }
    }

    pub(super) fn push(&mut self, value: JinjaValue) -> JinjaResult<()> {
        self.budget.work(1)?;
        if self.items.len() == self.paid {
            let more = self.paid.max(4);
            self.held.push(self.budget.reserve(more * ITEM_BYTES)?);
            self.paid += more;
        }
        self.items.push(value);
        Ok(())
    }

    pub(super) fn extend(&mut self, values: &[JinjaValue]) -> JinjaResult<()> {
        values.iter().try_for_each(|value| self.push(value.clone()))
    }

    pub(super) fn list(self) -> JinjaResult<JinjaValue> {
        JinjaValue::list(&self.budget, self.items, false)
    }

    /// What the lazy filters of the reference engine give.
    pub(super) fn iterator(self) -> JinjaResult<JinjaValue> {
        JinjaValue::sequence(&self.budget, self.items, false, Some(Cell::new(0)))
    }

    pub(super) fn tuple(self) -> JinjaResult<JinjaValue> {
        JinjaValue::list(&self.budget, self.items, true)
    }
}

impl JinjaValue {
    pub(super) fn text(budget: &Rc<RenderBudget>, text: &str) -> JinjaResult<Self> {
        Self::text_as(TextKind::Plain, budget, text)
    }

    pub(super) fn text_as(kind: TextKind, budget: &Rc<RenderBudget>, text: &str) -> JinjaResult<Self> {
        let mut writer = BudgetedWriter::new(budget)?;
        writer.push_str(text)?;
        Ok(Self::written_as(kind, writer))
    }

    pub(super) fn written(writer: BudgetedWriter) -> Self {
        Self::written_as(TextKind::Plain, writer)
    }

    pub(super) fn written_as(kind: TextKind, writer: BudgetedWriter) -> Self {
        let (text, held) = writer.into_parts();
        Self::Text(Rc::new(JinjaString { text: text.into_boxed_str(), kind, _held: held }))
    }

    /// An integer as JSON writes it.
    pub(super) fn integer(budget: &Rc<RenderBudget>, digits: &str) -> JinjaResult<Self> {
        if let Ok(value) = digits.parse() {
            return Ok(Self::Int(value));
        }
        let mut writer = BudgetedWriter::new(budget)?;
        writer.push_str(digits)?;
        let (text, held) = writer.into_parts();
        let (text, kind) = (text.into_boxed_str(), TextKind::Plain);
        Ok(Self::Digits(Rc::new(JinjaString { text, kind, _held: held })))
    }

    pub(super) fn list(budget: &Rc<RenderBudget>, items: Vec<JinjaValue>, is_tuple: bool) -> JinjaResult<Self> {
        Self::sequence(budget, items, is_tuple, None)
    }

    fn sequence(
        budget: &Rc<RenderBudget>,
        items: Vec<JinjaValue>,
        is_tuple: bool,
        had: Option<Cell<usize>>,
    ) -> JinjaResult<Self> {
        let held = budget.reserve(LIST_BYTES + items.len() * ITEM_BYTES)?;
        budget.work(items.len())?;
        let depth = checked_depth(items.iter().map(Self::depth).max().unwrap_or(0))?;
        Ok(Self::List(Rc::new(JinjaList { items, is_tuple, had, depth, _held: held })))
    }

    pub(super) fn pair(budget: &Rc<RenderBudget>, a: JinjaValue, b: JinjaValue) -> JinjaResult<Self> {
        Self::list(budget, vec![a, b], true)
    }

    /// A dictionary of keys that differ.
    pub(super) fn dict(budget: &Rc<RenderBudget>, entries: Vec<(JinjaValue, JinjaValue)>) -> JinjaResult<Self> {
        let held = budget.reserve(LIST_BYTES + entries.len() * 2 * ITEM_BYTES)?;
        budget.work(entries.len())?;
        let below = entries.iter().map(|(k, v)| k.depth().max(v.depth())).max().unwrap_or(0);
        let depth = checked_depth(below)?;
        Ok(Self::Dict(Rc::new(Dict { entries, depth, _held: held })))
    }

    pub(super) fn closure(
        budget: &Rc<RenderBudget>,
        decl: &Arc<Macro>,
        around: Vec<(JinjaName, JinjaValue)>,
        nested: bool,
    ) -> JinjaResult<Self> {
        let decl = Arc::clone(decl);
        let held = budget.reserve(LIST_BYTES + around.len() * 2 * ITEM_BYTES)?;
        let depth = checked_depth(around.iter().map(|(_, v)| v.depth()).max().unwrap_or(0))?;
        Ok(Self::Macro(Rc::new(Closure { decl, around, nested, depth, _held: held })))
    }

    pub(super) fn method(budget: &Rc<RenderBudget>, of: &JinjaValue, name: &JinjaName) -> JinjaResult<Self> {
        let (depth, _held) = (checked_depth(of.depth())?, budget.reserve(LIST_BYTES)?);
        Ok(Self::Method(Rc::new(Method { of: of.clone(), name: Arc::clone(name), depth, _held })))
    }

    pub(super) fn helper(budget: &Rc<RenderBudget>, kind: HelperKind) -> JinjaResult<Self> {
        let below = match &kind {
            HelperKind::Cycler(items) => items.depth,
            HelperKind::Joiner(separator) => separator.depth(),
        };
        let (depth, _held) = (checked_depth(below)?, budget.reserve(LIST_BYTES)?);
        Ok(Self::Helper(Rc::new(Helper { kind, at: Cell::new(0), depth, _held })))
    }

    pub(super) fn new_loop(
        budget: &Rc<RenderBudget>,
        decl: &Arc<JinjaForLoop>,
        items: Rc<JinjaList>,
        depth: usize,
    ) -> JinjaResult<Rc<Loop>> {
        let _held = budget.reserve(2 * LIST_BYTES)?;
        let (at, changed, over) = (Cell::new(0), RefCell::new(None), Cell::new(false));
        Ok(Rc::new(Loop { items, at, depth, decl: Arc::clone(decl), changed, over, _held }))
    }

    /// Levels of values in values. Namespaces count as nothing: the rendering, and not their owner, drops them.
    fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Dict(dict) => dict.depth,
            Self::Macro(closure) => closure.depth,
            Self::Loop(a_loop) => a_loop.items.depth + 1,
            Self::Method(method) => method.depth,
            Self::Helper(helper) => helper.depth,
            _ => 0,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is markup; what is no text is not.
    pub(super) fn text_kind(&self) -> TextKind {
        match self {
            Self::Text(text) => text.kind,
            _ => TextKind::Plain,
        }
    }

    /// Booleans count as 0 and 1, as in Python.
    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }

    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Digits(digits) => digits.parse().ok(),
            _ => self.as_int().map(|value| value as f64),
        }
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => list.had.is_some() || !list.is_empty(),
            Self::Dict(dict) => !dict.entries.is_empty(),
            _ => true,
        }
    }

    /// What the type is called in messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "undefined",
            Self::None => "none",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Digits(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "string",
            Self::List(list) if list.is_tuple => "tuple",
            Self::List(list) if list.had.is_some() => "iterator",
            Self::List(_) => "list",
            Self::Dict(_) => "dict",
            Self::Namespace(_) => "namespace",
            Self::Macro(_) => "macro",
            Self::Loop(_) => "loop",
            Self::Helper(_) => "object",
            Self::Method(_) => "method",
            Self::Function(_) => "function",
        }
    }

    /// The fault of using a value that is not there.
    pub(super) fn undefined_fault(&self) -> Option<Fault> {
        match self {
            Self::Undefined(Some(name)) => Some(Fault::wrong(format!("`{name}` is undefined"))),
            Self::Undefined(None) => Some(Fault::wrong("a value is undefined")),
            _ => None,
        }
    }

    /// The items of a list, the keys of a dictionary, the characters of a text.
    pub(super) fn iterate(&self, budget: &Rc<RenderBudget>) -> JinjaResult<Rc<JinjaList>> {
        let mut items = Items::new(budget);
        match self {
            Self::List(list) => match list.had.as_ref().map(|had| had.replace(list.len())) {
                None | Some(0) => return Ok(Rc::clone(list)),
                Some(had) => items.extend(list.get(had..).unwrap_or_default())?,
            },
            Self::Undefined(_) => {}
            Self::Dict(dict) => dict.entries.iter().try_for_each(|(key, _)| items.push(key.clone()))?,
            Self::Text(text) => {
                text.chars().try_for_each(|c| items.push(Self::text(budget, c.encode_utf8(&mut [0; 4]))?))?;
            }
            other => return Err(Fault::wrong(format!("a {} cannot be iterated over", other.kind()))),
        }
        match items.list()? {
            Self::List(list) => Ok(list),
            _ => Err(Fault::wrong("a list is expected")),
        }
    }

    /// How many items there are.
    pub(super) fn len(&self, budget: &Rc<RenderBudget>) -> JinjaResult<usize> {
        match self {
            Self::Undefined(_) => Ok(0),
            Self::List(list) if list.had.is_none() => Ok(list.len()),
            Self::Dict(dict) => Ok(dict.entries.len()),
            Self::Text(text) => {
                budget.read(text.len())?;
                Ok(text.chars().count())
            }
            other => Err(Fault::wrong(format!("a {} has no length", other.kind()))),
        }
    }
}
