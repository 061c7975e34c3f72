//! The functions of the three libraries: `libascendcl.so` (the runtime), `libnnopbase.so` (what operators are told) and
//! `libopapi.so` (the operators, each in two phases), by the types of CANN's public headers.

use std::ffi::{c_char, c_void};
use yirage_probe::{DriverLibrary, ProbeError};

/// What a library gives out and takes back: contexts, streams, events, tensors, scalars, executors.
pub(crate) type RawHandle = *mut c_void;

/// A table of functions, each found by its name when the library is loaded; one that is missing is an error then.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident = $name:literal: fn($($argument:ty),*) -> $answer:ty;)* }) => {
        $(#[$doc])*
        pub(crate) struct $table { $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $answer,)* }

        impl $table {
            /// Finds all of them.
            pub(crate) fn of(library: &DriverLibrary) -> Result<$table, ProbeError> {
                // SAFETY: the types are those of the functions of these names in CANN's headers.
                unsafe { Ok($table { $($field: library.function($name)?,)* }) }
            }
        }
    };
}

functions! {
    /// `acl/acl.h` and `acl/acl_rt.h`.
    RuntimeFunctions {
        start = "aclInit": fn(*const c_char) -> i32;
        recent_error = "aclGetRecentErrMsg": fn() -> *const c_char;
        new_context = "aclrtCreateContext": fn(*mut RawHandle, i32) -> i32;
        drop_context = "aclrtDestroyContext": fn(RawHandle) -> i32;
        current_context = "aclrtGetCurrentContext": fn(*mut RawHandle) -> i32;
        set_context = "aclrtSetCurrentContext": fn(RawHandle) -> i32;
        free_memory = "aclrtGetMemInfo": fn(i32, *mut usize, *mut usize) -> i32;
        alloc = "aclrtMalloc": fn(*mut RawHandle, usize, i32) -> i32;
        free = "aclrtFree": fn(RawHandle) -> i32;
        alloc_host = "aclrtMallocHost": fn(*mut RawHandle, usize) -> i32;
        free_host = "aclrtFreeHost": fn(RawHandle) -> i32;
        copy = "aclrtMemcpyAsync": fn(RawHandle, usize, *const c_void, usize, i32, RawHandle) -> i32;
        fill = "aclrtMemsetAsync": fn(RawHandle, usize, i32, usize, RawHandle) -> i32;
        new_stream = "aclrtCreateStream": fn(*mut RawHandle) -> i32;
        drop_stream = "aclrtDestroyStream": fn(RawHandle) -> i32;
        stop_on_failure = "aclrtSetStreamFailureMode": fn(RawHandle, u64) -> i32;
        wait_stream = "aclrtSynchronizeStreamWithTimeout": fn(RawHandle, i32) -> i32;
        new_event = "aclrtCreateEvent": fn(*mut RawHandle) -> i32;
        drop_event = "aclrtDestroyEvent": fn(RawHandle) -> i32;
        record_event = "aclrtRecordEvent": fn(RawHandle, RawHandle) -> i32;
        query_event = "aclrtQueryEventStatus": fn(RawHandle, *mut i32) -> i32;
    }
}

functions! {
    /// `aclnn/acl_meta.h` and `aclnn/aclnn_base.h`.
    DescriptionFunctions {
        new_tensor = "aclCreateTensor": fn(
            *const i64, u64, i32, *const i64, i64, i32, *const i64, u64, RawHandle) -> RawHandle;
        drop_tensor = "aclDestroyTensor": fn(RawHandle) -> i32;
        new_scalar = "aclCreateScalar": fn(*mut c_void, i32) -> RawHandle;
        drop_scalar = "aclDestroyScalar": fn(RawHandle) -> i32;
        keep_executor = "aclSetAclOpExecutorRepeatable": fn(RawHandle) -> i32;
        drop_executor = "aclDestroyAclOpExecutor": fn(RawHandle) -> i32;
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
pub(crate) type RunExecutor = unsafe extern "C" fn(RawHandle, u64, RawHandle, RawHandle) -> i32;

/// The first phase of an operator with these operands.
macro_rules! prepare {
    ($($argument:ty),*) => { unsafe extern "C" fn($($argument,)* *mut u64, *mut RawHandle) -> i32 };
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
    silu = "aclnnSilu": fn(RawHandle, RawHandle);
    tanh = "aclnnTanh": fn(RawHandle, RawHandle);
    sigmoid = "aclnnSigmoid": fn(RawHandle, RawHandle);
    exp = "aclnnExp": fn(RawHandle, RawHandle);
    log = "aclnnLog": fn(RawHandle, RawHandle);
    sqrt = "aclnnSqrt": fn(RawHandle, RawHandle);
    rsqrt = "aclnnRsqrt": fn(RawHandle, RawHandle);
    reciprocal = "aclnnReciprocal": fn(RawHandle, RawHandle);
    neg = "aclnnNeg": fn(RawHandle, RawHandle);
    abs = "aclnnAbs": fn(RawHandle, RawHandle);
    relu = "aclnnRelu": fn(RawHandle, RawHandle);
    gelu = "aclnnGeluV2": fn(RawHandle, i64, RawHandle);
    softmax = "aclnnSoftmax": fn(RawHandle, i64, RawHandle);
    cast = "aclnnCast": fn(RawHandle, i32, RawHandle);
    add = "aclnnAdd": fn(RawHandle, RawHandle, RawHandle, RawHandle);
    sub = "aclnnSub": fn(RawHandle, RawHandle, RawHandle, RawHandle);
    add_scalar = "aclnnAdds": fn(RawHandle, RawHandle, RawHandle, RawHandle);
    mul = "aclnnMul": fn(RawHandle, RawHandle, RawHandle);
    scale = "aclnnMuls": fn(RawHandle, RawHandle, RawHandle);
    div = "aclnnDiv": fn(RawHandle, RawHandle, RawHandle);
    maximum = "aclnnMaximum": fn(RawHandle, RawHandle, RawHandle);
    minimum = "aclnnMinimum": fn(RawHandle, RawHandle, RawHandle);
    not_equal = "aclnnNeTensor": fn(RawHandle, RawHandle, RawHandle);
    clamp = "aclnnClamp": fn(RawHandle, RawHandle, RawHandle, RawHandle);
    masked_fill = "aclnnInplaceMaskedFillScalar": fn(RawHandle, RawHandle, RawHandle);
    fill = "aclnnInplaceFillScalar": fn(RawHandle, RawHandle);
    copy = "aclnnInplaceCopy": fn(RawHandle, RawHandle);
    index_select = "aclnnIndexSelect": fn(RawHandle, i64, RawHandle, RawHandle);
    index_copy = "aclnnInplaceIndexCopy": fn(RawHandle, i64, RawHandle, RawHandle);
    rms_norm = "aclnnRmsNorm": fn(RawHandle, RawHandle, f64, RawHandle, RawHandle);
    matmul = "aclnnMatmul": fn(RawHandle, RawHandle, RawHandle, i8);
    batch_matmul = "aclnnBatchMatMul": fn(RawHandle, RawHandle, RawHandle, i8);
}
