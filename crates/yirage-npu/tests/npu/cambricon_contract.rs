//! That the libraries of Cambricon in software notice what a real one would not forgive: else the other tests would say little.

use crate::fake::FakeMachine;
use std::ffi::c_void;
use std::ptr::null_mut;
use yirage_npu::NpuVendor;
use yirage_probe::DriverLibrary;
use yirage_probe::families::{CNNL, CNRT};

type Handle = *mut c_void;
type NewHandle = unsafe extern "C" fn(*mut Handle) -> i32;
type OfHandle = unsafe extern "C" fn(Handle) -> i32;
type OfHandles = unsafe extern "C" fn(Handle, Handle) -> i32;
type SetTensor = unsafe extern "C" fn(Handle, i32, i32, i32, *const i64, *const i64) -> i32;
type AskCopy = unsafe extern "C" fn(Handle, Handle, Handle, *mut usize) -> i32;
type RunCopy = unsafe extern "C" fn(Handle, Handle, Handle, Handle, Handle, Handle, usize) -> i32;
type OfOne = unsafe extern "C" fn(Handle, Handle, Handle, Handle, Handle) -> i32;

/// The libraries of a machine, a handle with a queue, and 1024 bytes of the device.
struct Raw {
    operators: DriverLibrary,
    runtime: DriverLibrary,
    queue: Handle,
    memory: Handle,
    handle: Handle,
}

/// A function of a library.
macro_rules! of {
    ($library:expr, $name:literal: $type:ty) => {{
        // SAFETY: the type is that of the function in `fake/`.
        let function: $type = unsafe { $library.function($name) }.unwrap();
        function
    }};
}

impl Raw {
    fn new(machine: &FakeMachine) -> Raw {
        let surroundings = machine.surroundings();
        let (runtime, operators) = (CNRT.library(&surroundings).unwrap(), CNNL.library(&surroundings).unwrap());
        let (mut queue, mut memory, mut handle) = (null_mut(), null_mut(), null_mut());
        let new_queue = of!(runtime, "cnrtQueueCreate": NewHandle);
        let alloc = of!(runtime, "cnrtMalloc": unsafe extern "C" fn(*mut Handle, usize) -> i32);
        let new_handle = of!(operators, "cnnlCreate": NewHandle);
        let set_queue = of!(operators, "cnnlSetQueue": OfHandles);
        // SAFETY: each writes one handle; the last takes two that were written.
        let codes = unsafe {
            let made = [new_queue(&mut queue), alloc(&mut memory, 1024), new_handle(&mut handle)];
            [made[0], made[1], made[2], set_queue(handle, queue)]
        };
        assert_eq!(codes, [0; 4]);
        Raw { operators, runtime, queue, memory, handle }
    }

    /// A tensor of f32 of this many rows of 4, so many elements apart.
    fn tensor(&self, rows: i64, apart: i64) -> Handle {
        let (dims, strides, mut tensor) = ([rows, 4], [apart, 1], null_mut());
        let new = of!(self.operators, "cnnlCreateTensorDescriptor": NewHandle);
        let set = of!(self.operators, "cnnlSetTensorDescriptorEx_v2": SetTensor);
        // SAFETY: the lists live through the call.
        let codes = unsafe { [new(&mut tensor), set(tensor, 4, 2, 2, dims.as_ptr(), strides.as_ptr())] };
        assert_eq!(codes, [0; 2]);
        tensor
    }

    fn drop_tensor(&self, tensor: Handle) -> i32 {
        let drop = of!(self.operators, "cnnlDestroyTensorDescriptor": OfHandle);
        // SAFETY: the fake keeps what was given back, to find who uses it.
        unsafe { drop(tensor) }
    }

    fn at(&self, bytes: usize) -> Handle {
        self.memory.wrapping_byte_add(bytes)
    }

    /// What a copy wants to work in.
    fn asked(&self, from: Handle, to: Handle) -> usize {
        let (ask, mut bytes) = (of!(self.operators, "cnnlGetCopyWorkspaceSize": AskCopy), 0);
        // SAFETY: a number is written.
        assert_eq!(unsafe { ask(self.handle, from, to, &mut bytes) }, 0);
        bytes
    }

    /// Copies to the beginning of the memory from behind so many bytes of it.
    fn copied(&self, from: Handle, behind: usize, to: Handle, workspace: Handle, bytes: usize) -> i32 {
        let run = of!(self.operators, "cnnlCopy_v2": RunCopy);
        // SAFETY: the fake checks all of them.
        unsafe { run(self.handle, from, self.at(behind), to, self.memory, workspace, bytes) }
    }

    /// What the queue says once everything has run.
    fn waited(&self) -> i32 {
        let wait = of!(self.runtime, "cnrtQueueSync": OfHandle);
        // SAFETY: the queue is this one's.
        unsafe { wait(self.queue) }
    }

    /// Gives everything back.
    fn end(self) {
        let drop_queue = of!(self.runtime, "cnrtQueueDestroy": OfHandle);
        let free = of!(self.runtime, "cnrtFree": OfHandle);
        let drop_handle = of!(self.operators, "cnnlDestroy": OfHandle);
        // SAFETY: each is this one's and goes back once.
        assert_eq!(unsafe { [drop_queue(self.queue), free(self.memory), drop_handle(self.handle)] }, [0; 3]);
    }
}

/// `CNNL_STATUS_BAD_PARAM`.
const BAD: i32 = 3;

#[test]
#[ignore = "needs a compiler of C++"]
fn descriptions_live_through_a_call_and_workspaces_are_as_large_as_was_said() {
    let machine = FakeMachine::new(NpuVendor::Cambricon, &[]);
    let raw = Raw::new(&machine);
    let (to, from, narrow) = (raw.tensor(4, 4), raw.tensor(4, 8), raw.tensor(3, 4));
    let bytes = raw.asked(from, to);
    let workspace = raw.at(512);
    assert_eq!(raw.copied(from, 64, to, workspace, bytes - 1), BAD, "less to work in");
    let host = (&raw const bytes).cast_mut().cast();
    assert_eq!(raw.copied(from, 64, to, host, bytes), BAD, "memory of the host");
    assert_eq!(raw.copied(narrow, 64, to, workspace, bytes), BAD, "shapes that do not fit");
    assert_eq!((raw.copied(from, 64, to, workspace, bytes), raw.waited()), (0, 0), "rows apart are copied");
    let abs = of!(raw.operators, "cnnlAbs": OfOne);
    // SAFETY: the fake checks all of them.
    assert_eq!(unsafe { abs(raw.handle, from, raw.at(64), to, raw.memory) }, BAD, "and nothing else");
    assert_eq!((raw.drop_tensor(from), raw.drop_tensor(from)), (0, BAD), "given back twice");
    assert_eq!(raw.copied(from, 64, to, workspace, bytes), BAD, "a tensor that is gone");
    raw.drop_tensor(to);
    raw.end();
    let stats = machine.stats();
    assert_eq!((stats.tensors, stats.violations, stats.runs), (1, 6, 1), "the one that is left is a leak: {stats:?}");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn an_operator_that_leaves_its_memory_is_the_queues_fault() {
    let machine = FakeMachine::new(NpuVendor::Cambricon, &[]);
    let raw = Raw::new(&machine);
    let (to, from) = (raw.tensor(4, 4), raw.tensor(4, 4));
    // 64 bytes from 32 before the end on.
    let bytes = raw.asked(from, to);
    assert_eq!((raw.copied(from, 992, to, raw.at(512), bytes), raw.waited()), (0, 100_132));
    assert_eq!([to, from].map(|tensor| raw.drop_tensor(tensor)), [0; 2]);
    raw.end();
    assert_eq!(machine.stats().faults, 1);
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_handle_is_of_the_device_that_it_was_made_for() {
    let machine = FakeMachine::new(NpuVendor::Cambricon, &[("devices", "2")]);
    let raw = Raw::new(&machine);
    let (to, from) = (raw.tensor(4, 4), raw.tensor(4, 4));
    let bytes = raw.asked(from, to);
    let set_device = of!(raw.runtime, "cnrtSetDevice": unsafe extern "C" fn(i32) -> i32);
    // SAFETY: it takes a number.
    assert_eq!(unsafe { set_device(1) }, 0);
    assert_eq!(raw.copied(from, 64, to, raw.at(512), bytes), BAD);
    // SAFETY: it takes a number.
    assert_eq!(unsafe { set_device(0) }, 0);
    assert_eq!((raw.copied(from, 64, to, raw.at(512), bytes), raw.waited()), (0, 0));
    assert_eq!([to, from].map(|tensor| raw.drop_tensor(tensor)), [0; 2]);
    raw.end();
}
