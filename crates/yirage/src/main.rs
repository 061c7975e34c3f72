//! The `yirage` command.
fn main() {}
