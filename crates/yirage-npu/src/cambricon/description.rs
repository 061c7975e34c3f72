//! Descriptions of operands and operators as CNNL knows them: each goes back once, when nothing describes with it any more.
//!
//! An operator reads them when it is called and not later: they may go when the call has returned.

use super::status;
use super::symbols::{DropDescription, MakeDescription, OperatorFunctions};
use crate::operators::{OperandElement, TensorView};
use crate::status::refused;
use crate::symbols::LibraryPointer;
use std::marker::PhantomData;
use std::ptr::null_mut;
use yirage_hal::driver::DriverError;

/// `CNNL_LAYOUT_ARRAY`: as the strides say.
const AS_THE_STRIDES_SAY: i32 = 4;

/// The number of `cnnlDataType_t`.
pub(super) fn data_type(element: OperandElement) -> i32 {
    match element {
        OperandElement::F16 => 1,
        OperandElement::F32 => 2,
        OperandElement::I32 => 6,
        OperandElement::Bool => 8,
        OperandElement::BF16 => 17,
    }
}

/// Something that the library made.
pub(super) struct CnnlDescription<'a> {
    made: LibraryPointer,
    give_back: DropDescription,
    _of: PhantomData<&'a OperatorFunctions>,
}

impl<'a> CnnlDescription<'a> {
    /// Makes something by one function, which another takes back.
    pub(super) fn new(
        _of: &'a OperatorFunctions,
        call: &'static str,
        (make, give_back): (MakeDescription, DropDescription),
    ) -> Result<CnnlDescription<'a>, DriverError> {
        let mut made = null_mut();
        // SAFETY: a handle is written.
        status::of_operators(call, unsafe { make(&mut made) })?;
        if made.is_null() {
            return Err(refused(call, "it gave nothing"));
        }
        Ok(CnnlDescription { made, give_back, _of: PhantomData })
    }

    pub(super) fn pointer(&self) -> LibraryPointer {
        self.made
    }
}

impl Drop for CnnlDescription<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once; every call that reads it has returned.
        unsafe { (self.give_back)(self.made) };
    }
}

/// A tensor's description.
pub(super) fn tensor<'a>(f: &'a OperatorFunctions, view: &TensorView) -> Result<CnnlDescription<'a>, DriverError> {
    const CALL: &str = "cnnlSetTensorDescriptorEx_v2";
    let made = CnnlDescription::new(f, "cnnlCreateTensorDescriptor", (f.new_tensor, f.drop_tensor))?;
    let number = |n: &u64| i64::try_from(*n).map_err(|e| refused(CALL, e.to_string()));
    let shape = view.shape.iter().map(number).collect::<Result<Vec<i64>, _>>()?;
    let strides = view.strides.iter().map(number).collect::<Result<Vec<i64>, _>>()?;
    let rank = i32::try_from(shape.len()).map_err(|e| refused(CALL, e.to_string()))?;
    let element = data_type(view.element);
    // SAFETY: the lists are as long as is said, and are copied.
    let code =
        unsafe { (f.set_tensor)(made.made, AS_THE_STRIDES_SAY, element, rank, shape.as_ptr(), strides.as_ptr()) };
    status::of_operators(CALL, code).map(|()| made)
}
