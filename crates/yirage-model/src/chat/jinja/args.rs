//! Arguments of a call.

use super::ast::JinjaName;
use super::fault::{Fault, JinjaResult};
use super::value::JinjaValue;

/// Arguments by place and by name.
#[derive(Debug, Default)]
pub(super) struct Args {
    pub(super) plain: Vec<JinjaValue>,
    pub(super) named: Vec<(JinjaName, JinjaValue)>,
}

impl Args {
    pub(super) fn of(plain: Vec<JinjaValue>) -> Self {
        Self { plain, named: Vec::new() }
    }

    /// The arguments by the names of the parameters; a fault for those that have none.
    pub(super) fn bind<const N: usize>(self, callee: &str, params: [&str; N]) -> JinjaResult<[Option<JinjaValue>; N]> {
        if self.plain.len() > N {
            let given = self.plain.len();
            return Err(Fault::wrong(format!("`{callee}` takes at most {N} arguments and was given {given}")));
        }
        let mut bound = [const { None }; N];
        bound.iter_mut().zip(self.plain).for_each(|(slot, value)| *slot = Some(value));
        for (name, value) in self.named {
            let slot = params.iter().position(|param| **param == *name);
            match slot.map(|at| &mut bound[at]) {
                Some(slot @ None) => *slot = Some(value),
                Some(_) => return Err(Fault::wrong(format!("`{callee}` was given `{name}` twice"))),
                None => return Err(Fault::wrong(format!("`{callee}` has no argument `{name}`"))),
            }
        }
        Ok(bound)
    }
}

/// An argument that has to be there.
pub(super) fn needed(value: Option<JinjaValue>, callee: &str, param: &str) -> JinjaResult<JinjaValue> {
    value.ok_or_else(|| Fault::wrong(format!("`{callee}` needs `{param}`")))
}

/// An argument that has to be text.
pub(super) fn text<'v>(value: &'v JinjaValue, callee: &str) -> JinjaResult<&'v str> {
    let kind = value.kind();
    value
        .as_str()
        .ok_or_else(|| Fault::wrong(format!("`{callee}` takes a string here, and not a value of kind {kind}")))
}

/// An argument that has to be an integer; `default` where it is left out.
pub(super) fn int(value: Option<&JinjaValue>, default: i128, callee: &str) -> JinjaResult<i128> {
    let Some(value) = value else { return Ok(default) };
    let kind = value.kind();
    value
        .as_int()
        .ok_or_else(|| Fault::wrong(format!("`{callee}` takes an integer here, and not a value of kind {kind}")))
}

/// An argument that has to be a number from 0 on, as a size.
pub(super) fn size(value: Option<&JinjaValue>, default: usize, callee: &str) -> JinjaResult<usize> {
    let given = int(value, default as i128, callee)?;
    Ok(usize::try_from(given.max(0)).unwrap_or(usize::MAX))
}
