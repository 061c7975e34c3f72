//! The backends: the only list.

use crate::failure::Failure;
use yirage_hal::Backend;

/// Every backend of this build, in the order they are shown.
pub(crate) const BACKENDS: &[&dyn Backend] =
    &[&yirage_cpu::Cpu, &yirage_hal::reference::Reference::new(), &yirage_hal::null::Null];

/// The backend called `name`.
///
/// # Errors
/// [`Failure::Usage`] naming those there are.
pub(crate) fn named(name: &str) -> Result<&'static dyn Backend, Failure> {
    let known = || BACKENDS.iter().map(|b| b.name()).collect::<Vec<_>>().join(", ");
    BACKENDS.iter().copied().find(|b| b.name() == name).ok_or_else(|| {
        Failure::Usage(format!("the backend {name:?} is unknown: use one of {}; see `yirage devices`", known()))
    })
}
