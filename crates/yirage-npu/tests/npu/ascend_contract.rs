//! That the libraries of Ascend in software notice what a real one would not forgive: else the other tests would say little.

use crate::fake::FakeMachine;
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use yirage_npu::NpuVendor;
use yirage_probe::DriverLibrary;
use yirage_probe::families::{ASCEND, NNOPBASE, OPAPI};

type Handle = *mut c_void;
type NewTensor = unsafe extern "C" fn(*const i64, u64, i32, *const i64, i64, i32, *const i64, u64, Handle) -> Handle;
type First = unsafe extern "C" fn(Handle, Handle, *mut u64, *mut Handle) -> i32;
type Second = unsafe extern "C" fn(Handle, u64, Handle, Handle) -> i32;
type OfHandle = unsafe extern "C" fn(Handle) -> i32;
type NewHandle = unsafe extern "C" fn(*mut Handle) -> i32;

/// The libraries of a machine, a context, a stream, and 1024 bytes of the device.
struct Raw {
    descriptions: DriverLibrary,
    operators: DriverLibrary,
    runtime: DriverLibrary,
    stream: Handle,
    memory: Handle,
    context: Handle,
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
        let runtime = ASCEND.library(&surroundings).unwrap();
        let (mut context, mut stream, mut memory) = (null_mut(), null_mut(), null_mut());
        let start = of!(runtime, "aclInit": unsafe extern "C" fn(*const c_char) -> i32);
        let new_context = of!(runtime, "aclrtCreateContext": unsafe extern "C" fn(*mut Handle, i32) -> i32);
        let new_stream = of!(runtime, "aclrtCreateStream": NewHandle);
        let alloc = of!(runtime, "aclrtMalloc": unsafe extern "C" fn(*mut Handle, usize, i32) -> i32);
        // SAFETY: each writes one handle.
        let codes = unsafe {
            [start(null()), new_context(&mut context, 0), new_stream(&mut stream), alloc(&mut memory, 1024, 0)]
        };
        assert_eq!(codes, [0; 4]);
        let (descriptions, operators) =
            (NNOPBASE.library(&surroundings).unwrap(), OPAPI.library(&surroundings).unwrap());
        Raw { descriptions, operators, runtime, stream, memory, context }
    }

    /// A tensor of f32 of this many rows of 4, behind so many bytes of the memory.
    fn tensor(&self, rows: i64, behind: usize) -> Handle {
        let (dims, strides, storage) = ([rows, 4], [4, 1], [rows * 4]);
        let new = of!(self.descriptions, "aclCreateTensor": NewTensor);
        let data = self.memory.wrapping_byte_add(behind);
        // SAFETY: the lists live through the call; the data is an address that the host does not touch.
        unsafe { new(dims.as_ptr(), 2, 0, strides.as_ptr(), 0, 2, storage.as_ptr(), 1, data) }
    }

    fn drop_tensor(&self, tensor: Handle) -> i32 {
        let drop = of!(self.descriptions, "aclDestroyTensor": OfHandle);
        // SAFETY: the fake keeps what was given back, to find who uses it.
        unsafe { drop(tensor) }
    }

    /// An executor of `aclnnInplaceCopy`.
    fn copy(&self, to: Handle, from: Handle) -> Result<(u64, Handle), i32> {
        let (mut workspace, mut executor) = (0, null_mut());
        let first = of!(self.operators, "aclnnInplaceCopyGetWorkspaceSize": First);
        // SAFETY: two numbers are written.
        let code = unsafe { first(to, from, &mut workspace, &mut executor) };
        if code == 0 { Ok((workspace, executor)) } else { Err(code) }
    }

    fn run(&self, workspace: Handle, bytes: u64, executor: Handle) -> i32 {
        let second = of!(self.operators, "aclnnInplaceCopy": Second);
        // SAFETY: the fake checks all of them.
        unsafe { second(workspace, bytes, executor, self.stream) }
    }

    /// What the stream says once everything has run.
    fn waited(&self) -> i32 {
        let wait = of!(self.runtime, "aclrtSynchronizeStreamWithTimeout": unsafe extern "C" fn(Handle, i32) -> i32);
        // SAFETY: the stream is this one's.
        unsafe { wait(self.stream, -1) }
    }

    /// Gives everything back.
    fn end(self) {
        let drop_stream = of!(self.runtime, "aclrtDestroyStream": OfHandle);
        let free = of!(self.runtime, "aclrtFree": OfHandle);
        let drop_context = of!(self.runtime, "aclrtDestroyContext": OfHandle);
        // SAFETY: each is this one's and goes back once.
        assert_eq!(unsafe { [drop_stream(self.stream), free(self.memory), drop_context(self.context)] }, [0; 3]);
    }
}

const INVALID: i32 = 161_002;

#[test]
#[ignore = "needs a compiler of C++"]
fn descriptions_live_through_both_phases_and_executors_once() {
    let machine = FakeMachine::new(NpuVendor::Ascend, &[]);
    let raw = Raw::new(&machine);
    let (to, from, narrow) = (raw.tensor(4, 0), raw.tensor(4, 64), raw.tensor(3, 128));
    let (bytes, executor) = raw.copy(to, from).unwrap();
    let workspace = raw.memory.wrapping_byte_add(512);
    assert_eq!(raw.run(workspace, bytes - 1, executor), INVALID, "less to work in");
    assert_eq!(raw.run((&raw const bytes).cast_mut().cast(), bytes, executor), INVALID, "memory of the host");
    assert_eq!((raw.run(workspace, bytes, executor), raw.waited()), (0, 0));
    assert_eq!(raw.run(workspace, bytes, executor), INVALID, "a second time");
    assert_eq!(raw.copy(to, narrow), Err(INVALID), "shapes that do not fit");
    let (bytes, executor) = raw.copy(to, from).unwrap();
    assert_eq!((raw.drop_tensor(from), raw.drop_tensor(from)), (0, 100_000), "given back twice");
    assert_eq!(raw.run(workspace, bytes, executor), INVALID, "a tensor that is gone");
    assert_eq!(raw.copy(to, from), Err(INVALID));
    let gives_back = of!(raw.descriptions, "aclDestroyAclOpExecutor": OfHandle);
    // SAFETY: the executor is this one's.
    assert_eq!(unsafe { gives_back(executor) }, INVALID, "an executor that is not repeatable");
    raw.drop_tensor(to);
    raw.drop_tensor(narrow);
    raw.end();
    let stats = machine.stats();
    assert_eq!((stats.executors, stats.violations, stats.runs), (1, 8, 1), "the unused one is a leak: {stats:?}");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn an_operator_that_leaves_its_memory_is_the_streams_fault() {
    let machine = FakeMachine::new(NpuVendor::Ascend, &[]);
    let raw = Raw::new(&machine);
    // 64 bytes from 32 before the end on.
    let (to, from) = (raw.tensor(4, 992), raw.tensor(4, 0));
    let (bytes, executor) = raw.copy(to, from).unwrap();
    assert_eq!((raw.run(raw.memory.wrapping_byte_add(512), bytes, executor), raw.waited()), (0, 507_015));
    assert_eq!([to, from].map(|tensor| raw.drop_tensor(tensor)), [0; 2]);
    raw.end();
    assert_eq!(machine.stats().faults, 1);
}
