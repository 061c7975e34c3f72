//! How rows of a table become the layer methods of a class: `layer_methods!`, and what its arguments are.
//!
//! A row has the method's documentation, its name, its arguments with their types and defaults, and what it does:
//!
//! ```text
//! /// ``output = input @ weight.T``.
//! fn linear_layer(input: TensorHandle, weight: TensorHandle, output: TensorHandle; launch);
//! ```
//!
//! Arguments behind the first `;` have defaults. `launch` stands for Mirage's `grid_dim` and `block_dim`, and arguments
//! behind `*` are given by name alone. A row that ends here gives its arguments to the method of `KernelBuilder` that has its
//! name, `launch` last. One where that does not do says `=> |call| ..`, with the arguments as [`LayerArgument`] makes them, and
//! `as` stands before the method of which it is another name. `cargo xtask stubs` writes the stubs of the same rows.

use super::shared::{SharedKernel, wrong};
use super::tensor::PyKernelTensor;
use crate::failure::PyOutcome;
use crate::log::{Level, say};
use pyo3::prelude::*;
use pyo3::{Borrowed, FromPyObject};
use std::sync::Arc;
use yirage_persistent::{KernelBuilder, LaunchDims, PersistentError, TensorId};

/// The methods of a class, one a row: see the module's documentation. `beside` has methods that are no layers, as pyo3 wants
/// them: it takes all methods of a class from one block.
macro_rules! layer_methods {
    (
        $class:ident, |$slf:ident| $kernel:expr;
        $(beside { $($beside:tt)* })?
        $(
            $(#[$($about:tt)*])*
            fn $name:ident(
                $($operand:ident: $kind:ty),+
                $(; $launch:ident $(, $option:ident: $option_kind:ty = $default:tt)*)?
                $(; *, $($keyword:ident: $keyword_kind:ty = $keyword_default:tt),+)?
            ) $(as $said:ident)? $(-> $made:ty)? $(=> |$call:ident| $does:expr)?;
        )+
    ) => {
        #[pymethods]
        impl $class {
            $(
                $(#[$($about)*])*
                #[pyo3(signature = (
                    $($operand,)+
                    $(grid_dim = None, block_dim = None, $($option = $default,)*)?
                    $(*, $($keyword = $keyword_default,)+)?
                ))]
                #[allow(clippy::too_many_arguments, reason = "Mirage's")]
                #[allow(unused_variables, reason = "a tensor may be checked that the layer does not read")]
                fn $name(
                    $slf: &Bound<'_, Self>,
                    $($operand: $kind,)+
                    $(grid_dim: GridArgument, block_dim: GridArgument, $($option: $option_kind,)*)?
                    $($($keyword: $keyword_kind,)+)?
                ) -> PyOutcome<made_by_layer!($($made)?)> {
                    let call = LayerCall { py: $slf.py(), kernel: $kernel, what: said_by_layer!($name $($said)?) };
                    $(let $operand = call.take($operand)?;)+
                    $(let $launch = launch(grid_dim, block_dim); $(let $option = call.take($option)?;)*)?
                    $($(let $keyword = call.take($keyword)?;)+)?
                    done_by_layer!(call, $name $($said)?, [$($operand,)+ $($($option,)* $launch)?], $(|$call| $does)?)
                }
            )+

            $($($beside)*)?
        }
    };
}

/// The name that a method's errors say.
macro_rules! said_by_layer {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $said:ident) => {
        stringify!($said)
    };
}

/// What a method gives back.
macro_rules! made_by_layer {
    () => {
        ()
    };
    ($made:ty) => {
        $made
    };
}

/// What a method does: what its row says, or the builder's method of its name.
macro_rules! done_by_layer {
    ($call:ident, $name:ident $said:ident, $($rest:tt)*) => { done_by_layer!($call, $said, $($rest)*) };
    ($call:ident, $name:ident, [$($value:ident),+ $(,)?],) => { $call.add(|builder| builder.$name($($value),+)) };
    ($call:ident, $name:ident, [$($value:ident),+ $(,)?], |$own:ident| $does:expr) => {{
        let $own = &$call;
        $does
    }};
}

/// A tensor of a kernel.
pub(super) type TensorHandle = Py<PyKernelTensor>;
/// Three sizes of a grid or a block.
pub(super) type GridArgument = Option<[u32; 3]>;

/// Two tensors; with `MASK` also three, of which the last is Mirage's mask of experts, which nothing here writes.
pub(super) struct TensorPair<const MASK: bool = false>(Vec<TensorHandle>);

/// Weights and indices of experts.
pub(super) type RoutingPair = TensorPair<true>;

impl<'a, 'py, const MASK: bool> FromPyObject<'a, 'py> for TensorPair<MASK> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(TensorPair)
    }
}

pub(super) fn launch(grid: GridArgument, block: GridArgument) -> LaunchDims {
    LaunchDims { grid: grid.unwrap_or(LaunchDims::ONE.grid), block: block.unwrap_or(LaunchDims::ONE.block) }
}

/// One call of a layer method.
pub(super) struct LayerCall<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) kernel: &'a Arc<SharedKernel>,
    /// The name of the method, or of the one that it is another name of.
    pub(super) what: &'static str,
}

impl LayerCall<'_, '_> {
    pub(super) fn take<T: LayerArgument>(&self, argument: T) -> PyOutcome<T::Taken> {
        argument.taken(self)
    }

    /// Adds a layer.
    pub(super) fn add(&self, add: impl FnOnce(&mut KernelBuilder) -> Result<(), PersistentError>) -> PyOutcome<()> {
        self.kernel.building(self.py, self.what, |builder| Ok(add(builder)?))
    }

    /// Adds a layer that makes its tensor, which is given under this name.
    pub(super) fn make(
        &self,
        name: &str,
        make: impl FnOnce(&mut KernelBuilder) -> Result<TensorId, PersistentError>,
    ) -> PyOutcome<PyKernelTensor> {
        let kernel = self.kernel;
        kernel.building(self.py, self.what, |builder| {
            let id = make(builder)?;
            PyKernelTensor::shown(kernel, builder, id, name)
        })
    }

    /// Says something of arguments once, however many layers of the kernel have them.
    pub(super) fn tell_once(&self, text: &'static str) -> PyOutcome<()> {
        Ok(self.kernel.tell_once(self.py, text)?)
    }
}

/// What an argument is as Python gives it, and what a layer gets.
pub(super) trait LayerArgument {
    /// What a layer gets: of a tensor its number.
    type Taken;

    /// # Errors
    /// A `KernelError` for a tensor of another kernel, and for other than two in a pair.
    fn taken(self, call: &LayerCall<'_, '_>) -> PyOutcome<Self::Taken>;
}

impl LayerArgument for TensorHandle {
    type Taken = TensorId;

    fn taken(self, call: &LayerCall<'_, '_>) -> PyOutcome<TensorId> {
        self.get().of(call.kernel, call.what)
    }
}

impl<T: LayerArgument> LayerArgument for Option<T> {
    type Taken = Option<T::Taken>;

    fn taken(self, call: &LayerCall<'_, '_>) -> PyOutcome<Self::Taken> {
        self.map(|argument| argument.taken(call)).transpose()
    }
}

impl<const MASK: bool> LayerArgument for TensorPair<MASK> {
    type Taken = [TensorId; 2];

    fn taken(self, call: &LayerCall<'_, '_>) -> PyOutcome<[TensorId; 2]> {
        let (what, given) = (call.what, self.0.len());
        let taken = |tensor: &TensorHandle| tensor.get().of(call.kernel, what);
        match &self.0[..] {
            [first, second] => Ok([taken(first)?, taken(second)?]),
            [first, second, third] if MASK => {
                taken(third)?;
                say(call.py, Level::Info, &format!("{what}: the mask of experts is neither written nor read here"))?;
                Ok([taken(first)?, taken(second)?])
            }
            _ => Err(wrong(format!("{what}: {given} tensors are given, two are wanted"))),
        }
    }
}

/// Arguments that a layer gets as they are.
macro_rules! taken_as_they_are {
    ($($kind:ty),+) => {
        $(impl LayerArgument for $kind {
            type Taken = $kind;

            fn taken(self, _: &LayerCall<'_, '_>) -> PyOutcome<$kind> {
                Ok(self)
            }
        })+
    };
}

taken_as_they_are!(u32, u64, f32, bool, Vec<u32>, Py<PyAny>);
