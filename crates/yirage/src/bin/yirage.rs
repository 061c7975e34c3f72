//! The `yirage` program: the command on a process of its own.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use yirage_process::last_resort;

#[global_allocator]
static ALLOCATOR: last_resort::Allocator = last_resort::Allocator;

fn main() -> ExitCode {
    yirage::main(std::env::args_os().collect()).into()
}
