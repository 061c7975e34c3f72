//! The functions of the two libraries: `libcnrt.so` (the runtime) and `libcnnl.so` (the operators), by the types of Neuware's public
//! headers and of the public programs that call them.

use crate::symbols::{LibraryPointer, functions};
use std::ffi::c_void;
use yirage_probe::{DriverLibrary, ProbeError};

functions! {
    /// `cnrt.h`.
    RuntimeFunctions {
        current_device = "cnrtGetDevice": fn(*mut i32) -> i32;
        set_device = "cnrtSetDevice": fn(i32) -> i32;
        free_memory = "cnrtMemGetInfo": fn(*mut usize, *mut usize) -> i32;
        alloc = "cnrtMalloc": fn(*mut LibraryPointer, usize) -> i32;
        free = "cnrtFree": fn(LibraryPointer) -> i32;
        alloc_host = "cnrtHostMalloc": fn(*mut LibraryPointer, usize) -> i32;
        free_host = "cnrtFreeHost": fn(LibraryPointer) -> i32;
        copy = "cnrtMemcpyAsync_V2": fn(LibraryPointer, LibraryPointer, usize, LibraryPointer, i32) -> i32;
        fill = "cnrtMemsetAsync": fn(LibraryPointer, i32, usize, LibraryPointer) -> i32;
        new_queue = "cnrtQueueCreate": fn(*mut LibraryPointer) -> i32;
        drop_queue = "cnrtQueueDestroy": fn(LibraryPointer) -> i32;
        query_queue = "cnrtQueueQuery": fn(LibraryPointer) -> i32;
        new_notifier = "cnrtNotifierCreate": fn(*mut LibraryPointer) -> i32;
        drop_notifier = "cnrtNotifierDestroy": fn(LibraryPointer) -> i32;
        place_notifier = "cnrtPlaceNotifier": fn(LibraryPointer, LibraryPointer) -> i32;
        query_notifier = "cnrtQueryNotifier": fn(LibraryPointer) -> i32;
    }
}

/// A function of the elements of one tensor.
pub(super) type OfElements =
    unsafe extern "C" fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
/// One that is told how near it has to come.
pub(super) type NearOfElements =
    unsafe extern "C" fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
/// The larger or the smaller of two.
pub(super) type OneOfTwo = unsafe extern "C" fn(
    LibraryPointer,
    LibraryPointer,
    *const c_void,
    LibraryPointer,
    *const c_void,
    LibraryPointer,
    LibraryPointer,
    LibraryPointer,
    usize,
) -> i32;
/// What that wants to work in.
pub(super) type WorkspaceOfOneOfTwo = unsafe extern "C" fn(LibraryPointer, LibraryPointer, *mut usize) -> i32;
/// What makes a description.
pub(super) type MakeDescription = unsafe extern "C" fn(*mut LibraryPointer) -> i32;
/// What takes it back.
pub(super) type DropDescription = unsafe extern "C" fn(LibraryPointer) -> i32;

functions! {
    /// `cnnl.h`.
    OperatorFunctions {
        new_handle = "cnnlCreate": fn(*mut LibraryPointer) -> i32;
        drop_handle = "cnnlDestroy": fn(LibraryPointer) -> i32;
        set_queue = "cnnlSetQueue": fn(LibraryPointer, LibraryPointer) -> i32;
        new_tensor = "cnnlCreateTensorDescriptor": fn(*mut LibraryPointer) -> i32;
        set_tensor = "cnnlSetTensorDescriptorEx_v2":
            fn(LibraryPointer, i32, i32, i32, *const i64, *const i64) -> i32;
        drop_tensor = "cnnlDestroyTensorDescriptor": fn(LibraryPointer) -> i32;
        new_arithmetic = "cnnlCreateOpTensorDescriptor": fn(*mut LibraryPointer) -> i32;
        set_arithmetic = "cnnlSetOpTensorDescriptor": fn(LibraryPointer, i32, i32, i32) -> i32;
        drop_arithmetic = "cnnlDestroyOpTensorDescriptor": fn(LibraryPointer) -> i32;
        arithmetic_workspace = "cnnlGetOpTensorWorkspaceSize_v2":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, *const c_void, *const c_void, LibraryPointer,
               *const c_void, *const c_void, LibraryPointer, LibraryPointer, *mut usize) -> i32;
        arithmetic = "cnnlOpTensor":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, *const c_void, *const c_void, LibraryPointer,
               *const c_void, LibraryPointer, usize, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        new_reduction = "cnnlCreateReduceDescriptor": fn(*mut LibraryPointer) -> i32;
        set_reduction = "cnnlSetReduceDescriptor_v2":
            fn(LibraryPointer, *const i32, i32, i32, i32, i32, i32, i32, f32) -> i32;
        drop_reduction = "cnnlDestroyReduceDescriptor": fn(LibraryPointer) -> i32;
        reduction_workspace = "cnnlGetReduceOpWorkspaceSize":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, *mut usize) -> i32;
        reduction = "cnnlReduce":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, usize, *const c_void, LibraryPointer, *const c_void, usize,
               LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        new_product = "cnnlMatMulDescCreate": fn(*mut LibraryPointer) -> i32;
        set_product = "cnnlSetMatMulDescAttr": fn(LibraryPointer, i32, *const c_void, usize) -> i32;
        drop_product = "cnnlMatMulDescDestroy": fn(LibraryPointer) -> i32;
        new_algorithm = "cnnlMatMulAlgoCreate": fn(*mut LibraryPointer) -> i32;
        drop_algorithm = "cnnlMatMulAlgoDestroy": fn(LibraryPointer) -> i32;
        new_choice = "cnnlCreateMatMulHeuristicResult": fn(*mut LibraryPointer) -> i32;
        drop_choice = "cnnlDestroyMatMulHeuristicResult": fn(LibraryPointer) -> i32;
        choose_product = "cnnlGetBatchMatMulExAlgoHeuristic":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, i32,
               *mut LibraryPointer, *mut i32) -> i32;
        chosen_product = "cnnlGetBatchMatMulExHeuristicResult": fn(LibraryPointer, LibraryPointer, *mut usize) -> i32;
        product = "cnnlBatchMatMulEx":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer,
               *const c_void, *const c_void, LibraryPointer, LibraryPointer, LibraryPointer, usize) -> i32;
        copy_workspace = "cnnlGetCopyWorkspaceSize":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, *mut usize) -> i32;
        copy = "cnnlCopy_v2":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer, LibraryPointer, usize) -> i32;
        expand = "cnnlExpand":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        fill = "cnnlFill_v3": fn(LibraryPointer, i32, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        cast = "cnnlCastDataType":
            fn(LibraryPointer, LibraryPointer, *const c_void, i32, LibraryPointer, LibraryPointer) -> i32;
        linear = "cnnlTransform_v2":
            fn(LibraryPointer, i32, *const c_void, LibraryPointer, *const c_void, *const c_void, LibraryPointer,
               LibraryPointer) -> i32;
        clip = "cnnlClip_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, *const c_void, *const c_void, LibraryPointer,
               LibraryPointer) -> i32;
        compare_workspace = "cnnlGetLogicOpWorkspaceSize":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, *mut usize) -> i32;
        compare = "cnnlLogicOp":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer, usize,
               LibraryPointer, LibraryPointer) -> i32;
        select_workspace = "cnnlGetSelectV2WorkspaceSize":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, *mut usize) -> i32;
        select = "cnnlSelectV2":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer, *const c_void,
               LibraryPointer, usize, LibraryPointer, LibraryPointer) -> i32;
        index_select = "cnnlIndexSelect":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer,
               LibraryPointer) -> i32;
        scatter = "cnnlScatterNd_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer,
               *const c_void, LibraryPointer, LibraryPointer) -> i32;
        divide_workspace = "cnnlGetDivWorkspaceSize":
            fn(LibraryPointer, LibraryPointer, LibraryPointer, LibraryPointer, *mut usize) -> i32;
        divide = "cnnlDiv_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer, usize,
               LibraryPointer, LibraryPointer) -> i32;
        maximum_workspace = "cnnlGetMaximumWorkspaceSize": fn(LibraryPointer, LibraryPointer, *mut usize) -> i32;
        maximum = "cnnlMaximum":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer,
               LibraryPointer, usize) -> i32;
        minimum_workspace = "cnnlGetMinimumWorkspaceSize": fn(LibraryPointer, LibraryPointer, *mut usize) -> i32;
        minimum = "cnnlMinimum":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer,
               LibraryPointer, usize) -> i32;
        abs = "cnnlAbs": fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        negate = "cnnlNegTensor": fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        reciprocal = "cnnlReciprocal":
            fn(LibraryPointer, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        exp = "cnnlExp_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        log = "cnnlLog_v2":
            fn(LibraryPointer, i32, i32, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        sqrt = "cnnlSqrt_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        rsqrt = "cnnlRsqrt_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
        erf = "cnnlErf_v2":
            fn(LibraryPointer, i32, LibraryPointer, *const c_void, LibraryPointer, LibraryPointer) -> i32;
    }
}
