//! Where an operand of a kernel lies, and the environment of a run.

use super::state::CpuState;
use super::weight::CpuWeight;
use crate::memory::HugeBuf;
use crate::rows::{Dst, Src};
use std::sync::{Arc, Mutex};
use yirage_hal::HalError;
use yirage_ir::{Dim, Dims, Type};

/// An operand, resolved when the plan was loaded.
#[derive(Clone)]
pub(super) enum Operand {
    /// A placed value: bytes of the arena.
    Arena { offset: usize, ty: Type },
    /// A slot by number.
    Slot { index: usize, ty: Type },
    /// A weight.
    Weight(Arc<WeightRef>),
    /// A cache state.
    State(Arc<StateRef>),
}

/// Keeps a weight alive and gives its device form.
pub(super) struct WeightRef(pub(super) Arc<dyn std::any::Any + Send + Sync>);
/// Keeps a state alive and gives its device form.
pub(super) struct StateRef(pub(super) Arc<dyn std::any::Any + Send + Sync>);

impl WeightRef {
    pub(super) fn get(&self) -> Result<&CpuWeight, HalError> {
        let foreign = || HalError::Load("a weight belongs to another device".into());
        self.0.downcast_ref::<CpuWeight>().ok_or_else(foreign)
    }
}

impl StateRef {
    pub(super) fn get(&self) -> Result<&CpuState, HalError> {
        let foreign = || HalError::Load("a state belongs to another device".into());
        self.0.downcast_ref::<CpuState>().ok_or_else(foreign)
    }
}

/// What a kernel sees of a run.
pub(super) struct Env<'a> {
    pub(super) dims: &'a Dims,
    /// The words of each slot.
    pub(super) slots: &'a [&'a [i32]],
    pub(super) arena: &'a HugeBuf,
    pub(super) scratch: &'a HugeBuf,
    /// The first error of any worker.
    pub(super) failed: &'a Mutex<Option<HalError>>,
}

impl Env<'_> {
    /// Keeps the first error of a run.
    pub(super) fn fail(&self, error: impl ToString) {
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert_with(|| HalError::Device(error.to_string()));
        }
    }

    /// Address of arena byte `offset`; plans are verified to stay inside.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.arena.len());
        self.arena.as_ptr().wrapping_add(offset)
    }
}

impl Operand {
    /// The type, where the operand has one of its own.
    pub(super) fn ty(&self) -> Option<&Type> {
        match self {
            Operand::Arena { ty, .. } | Operand::Slot { ty, .. } => Some(ty),
            _ => None,
        }
    }

    /// Elements of a row.
    pub(super) fn width(&self) -> usize {
        self.ty().and_then(Type::width).unwrap_or(1)
    }

    /// The dimension its rows run over.
    pub(super) fn rows(&self) -> Option<Dim> {
        self.ty().and_then(|t| t.shape.first().copied())
    }

    /// Its rows of floats in the arena.
    pub(super) fn src(&self, env: &Env) -> Src {
        Src::new(self.floats(env), self.width())
    }

    /// Its rows of floats in the arena, to write.
    pub(super) fn dst(&self, env: &Env) -> Dst {
        Dst::new(self.floats(env), self.width())
    }

    /// First float of an arena operand, or of a slot, which is read only; binding has checked that it is one.
    pub(super) fn floats(&self, env: &Env) -> *mut f32 {
        match self {
            Operand::Arena { offset, .. } => env.at(*offset).cast(),
            Operand::Slot { index, .. } => env.slots[*index].as_ptr().cast::<f32>().cast_mut(),
            _ => std::ptr::null_mut(),
        }
    }

    /// Integers of a slot, or of an arena value.
    ///
    /// # Safety
    /// An arena value was written before and is not written meanwhile.
    pub(super) unsafe fn ints<'a>(&self, env: &'a Env) -> &'a [i32] {
        match self {
            Operand::Slot { index, .. } => env.slots[*index],
            // SAFETY: verified plans place the whole value inside the arena; the caller orders writes before.
            Operand::Arena { offset, ty } => unsafe {
                std::slice::from_raw_parts(env.at(*offset).cast(), ty.elems(env.dims))
            },
            _ => &[],
        }
    }

    /// Fails unless the operand is a placed f32 value.
    pub(super) fn want_floats(&self, what: &str) -> Result<(), HalError> {
        match self {
            Operand::Arena { ty, .. } | Operand::Slot { ty, .. } if ty.dtype == yirage_ir::DType::F32 => Ok(()),
            _ => Err(HalError::Load(format!("{what} is not an f32 value of the plan"))),
        }
    }

    /// Fails unless the operand is a weight held as plain rows, or a slot of floats.
    pub(super) fn want_table(&self, what: &str) -> Result<(), HalError> {
        match self {
            Operand::Slot { .. } => self.want_floats(what),
            _ => self.weight_rows(what).map(|_| ()),
        }
    }

    /// The floats of an operand that [`Operand::want_table`] has checked.
    pub(super) fn table<'a>(&'a self, env: &'a Env) -> &'a [f32] {
        match self {
            Operand::Weight(w) => w.plain(),
            // SAFETY: floats and words have one size and alignment, and all bits are floats.
            Operand::Slot { index, .. } => unsafe {
                let words = env.slots[*index];
                std::slice::from_raw_parts(words.as_ptr().cast(), words.len())
            },
            _ => &[],
        }
    }

    /// The plain values of a weight.
    pub(super) fn weight_rows(&self, what: &str) -> Result<Arc<WeightRef>, HalError> {
        match self {
            Operand::Weight(w) if w.get()?.rows().is_some() => Ok(w.clone()),
            _ => Err(HalError::Load(format!("{what} is not a weight held as plain rows"))),
        }
    }
}

impl WeightRef {
    /// The plain values; binding has checked that there are some.
    pub(super) fn plain(&self) -> &[f32] {
        self.get().ok().and_then(CpuWeight::rows).unwrap_or(&[])
    }
}
