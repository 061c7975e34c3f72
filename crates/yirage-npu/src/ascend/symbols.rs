//! The functions of the three libraries: `libascendcl.so` (the runtime), `libnnopbase.so` (what operators are told) and
//! `libopapi.so` (the operators, each in two phases), by the types of CANN's public headers.

use crate::symbols::{LibraryPointer, functions};
use std::ffi::{c_char, c_void};
use yirage_probe::{DriverLibrary, ProbeError};

functions! {
    /// `acl/acl.h` and `acl/acl_rt.h`.
    RuntimeFunctions {
        start = "aclInit": fn(*const c_char) -> i32;
        recent_error = "aclGetRecentErrMsg": fn() -> *const c_char;
        new_context = "aclrtCreateContext": fn(*mut LibraryPointer, i32) -> i32;
        drop_context = "aclrtDestroyContext": fn(LibraryPointer) -> i32;
        current_context = "aclrtGetCurrentContext": fn(*mut LibraryPointer) -> i32;
        set_context = "aclrtSetCurrentContext": fn(LibraryPointer) -> i32;
        free_memory = "aclrtGetMemInfo": fn(i32, *mut usize, *mut usize) -> i32;
        alloc = "aclrtMalloc": fn(*mut LibraryPointer, usize, i32) -> i32;
        free = "aclrtFree": fn(LibraryPointer) -> i32;
        alloc_host = "aclrtMallocHost": fn(*mut LibraryPointer, usize) -> i32;
        free_host = "aclrtFreeHost": fn(LibraryPointer) -> i32;
        copy = "aclrtMemcpyAsync": fn(LibraryPointer, usize, *const c_void, usize, i32, LibraryPointer) -> i32;
        fill = "aclrtMemsetAsync": fn(LibraryPointer, usize, i32, usize, LibraryPointer) -> i32;
        new_stream = "aclrtCreateStream": fn(*mut LibraryPointer) -> i32;
        drop_stream = "aclrtDestroyStream": fn(LibraryPointer) -> i32;
        stop_on_failure = "aclrtSetStreamFailureMode": fn(LibraryPointer, u64) -> i32;
        wait_stream = "aclrtSynchronizeStreamWithTimeout": fn(LibraryPointer, i32) -> i32;
        new_event = "aclrtCreateEvent": fn(*mut LibraryPointer) -> i32;
        drop_event = "aclrtDestroyEvent": fn(LibraryPointer) -> i32;
        record_event = "aclrtRecordEvent": fn(LibraryPointer, LibraryPointer) -> i32;
        query_event = "aclrtQueryEventStatus": fn(LibraryPointer, *mut i32) -> i32;
    }
}

functions! {
    /// `aclnn/acl_meta.h` and `aclnn/aclnn_base.h`.
    DescriptionFunctions {
        new_tensor = "aclCreateTensor": fn(
            *const i64, u64, i32, *const i64, i64, i32, *const i64, u64, LibraryPointer) -> LibraryPointer;
        drop_tensor = "aclDestroyTensor": fn(LibraryPointer) -> i32;
        new_scalar = "aclCreateScalar": fn(*mut c_void, i32) -> LibraryPointer;
        drop_scalar = "aclDestroyScalar": fn(LibraryPointer) -> i32;
        keep_executor = "aclSetAclOpExecutorRepeatable": fn(LibraryPointer) -> i32;
        drop_executor = "aclDestroyAclOpExecutor": fn(LibraryPointer) -> i32;
    }
}

/// An operator: what makes an executor of its operands and says what that wants to work in, and what runs the executor.
#[derive(Clone, Copy)]
pub(crate) struct TwoPhase<Prepare> {
    pub(crate) name: &'static str,
    pub(crate) prepare: Prepare,
    pub(crate) run: RunExecutor,
}

/// Workspace, its bytes, an executor, a stream.
pub(crate) type RunExecutor = unsafe extern "C" fn(LibraryPointer, u64, LibraryPointer, LibraryPointer) -> i32;

/// The first phase of an operator with these operands.
macro_rules! prepare {
    ($($argument:ty),*) => { unsafe extern "C" fn($($argument,)* *mut u64, *mut LibraryPointer) -> i32 };
}

/// Two phases for each operator.
macro_rules! operators {
    ($($field:ident = $name:literal: fn($($argument:ty),*);)*) => {
        /// `aclnnop/*.h`.
        pub(crate) struct OperatorFunctions { $(pub(crate) $field: TwoPhase<prepare!($($argument),*)>,)* }

        impl OperatorFunctions {
            /// Finds all of them.
            pub(crate) fn of(library: &DriverLibrary) -> Result<OperatorFunctions, ProbeError> {
                // SAFETY: the types are those of the functions of these names in CANN's headers.
                unsafe {
                    Ok(OperatorFunctions { $($field: TwoPhase {
                        name: $name,
                        prepare: library.function(concat!($name, "GetWorkspaceSize"))?,
                        run: library.function($name)?,
                    },)* })
                }
            }
        }
    };
}

operators! {
    silu = "aclnnSilu": fn(LibraryPointer, LibraryPointer);
    tanh = "aclnnTanh": fn(LibraryPointer, LibraryPointer);
    sigmoid = "aclnnSigmoid": fn(LibraryPointer, LibraryPointer);
    exp = "aclnnExp": fn(LibraryPointer, LibraryPointer);
    log = "aclnnLog": fn(LibraryPointer, LibraryPointer);
    sqrt = "aclnnSqrt": fn(LibraryPointer, LibraryPointer);
    rsqrt = "aclnnRsqrt": fn(LibraryPointer, LibraryPointer);
    reciprocal = "aclnnReciprocal": fn(LibraryPointer, LibraryPointer);
    neg = "aclnnNeg": fn(LibraryPointer, LibraryPointer);
    abs = "aclnnAbs": fn(LibraryPointer, LibraryPointer);
    relu = "aclnnRelu": fn(LibraryPointer, LibraryPointer);
    gelu = "aclnnGeluV2": fn(LibraryPointer, i64, LibraryPointer);
    softmax = "aclnnSoftmax": fn(LibraryPointer, i64, LibraryPointer);
    cast = "aclnnCast": fn(LibraryPointer, i32, LibraryPointer);
    add = "aclnnAdd": fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer);
    sub = "aclnnSub": fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer);
    add_scalar = "aclnnAdds": fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer);
    mul = "aclnnMul": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    scale = "aclnnMuls": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    div = "aclnnDiv": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    maximum = "aclnnMaximum": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    minimum = "aclnnMinimum": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    not_equal = "aclnnNeTensor": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    clamp = "aclnnClamp": fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer);
    masked_fill = "aclnnInplaceMaskedFillScalar": fn(LibraryPointer, LibraryPointer, LibraryPointer);
    fill = "aclnnInplaceFillScalar": fn(LibraryPointer, LibraryPointer);
    copy = "aclnnInplaceCopy": fn(LibraryPointer, LibraryPointer);
    index_select = "aclnnIndexSelect": fn(LibraryPointer, i64, LibraryPointer, LibraryPointer);
    index_copy = "aclnnInplaceIndexCopy": fn(LibraryPointer, i64, LibraryPointer, LibraryPointer);
    rms_norm = "aclnnRmsNorm": fn(LibraryPointer, LibraryPointer, f64, LibraryPointer, LibraryPointer);
    matmul = "aclnnMatmul": fn(LibraryPointer, LibraryPointer, LibraryPointer, i8);
    batch_matmul = "aclnnBatchMatMul": fn(LibraryPointer, LibraryPointer, LibraryPointer, i8);
}
