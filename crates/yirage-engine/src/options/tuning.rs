//! How the device's kernels go about products.

use std::path::PathBuf;
use yirage_hal::Length;

/// How the device's kernels go about products, where they have several ways of equal bytes. A device with one way has
/// nothing to choose.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Tuning {
    /// As the device does by itself.
    #[default]
    Unmeasured,
    /// With these choices, as text; the others are the device's.
    Forced(String),
    /// As was fastest when the model first started on this processor.
    Measured {
        /// Where that is kept; `None` measures at each start.
        folder: Option<PathBuf>,
        /// How much is measured now, whatever is kept; `None` goes by that.
        anew: Option<Length>,
    },
}
