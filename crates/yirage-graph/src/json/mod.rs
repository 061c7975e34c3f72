//! Graphs as JSON, both ways.
//!
//! ```json
//! {"yirage-graph": 2, "graph": {
//!   "name": "gate",
//!   "inputs": [{"name": "x", "kind": "input", "dtype": "f32", "shape": [8, 64]}],
//!   "nodes": [{"op": "map", "attrs": {"expr": "silu(x0)"}, "inputs": ["x"],
//!              "outputs": [{"name": "y", "dtype": "f32", "shape": [8, 64]}]}],
//!   "outputs": ["y"]}}
//! ```
//!
//! - `yirage-graph`: the version of this form. Other versions are refused.
//! - `inputs`, in the order of their declaration: `kind` is `input`, `weight` or `kv_cache`; `dtype` a type of elements as the
//!   text form has it (`f32`, `q4_0`, or a layout of activations such as `q8a`); `shape` sizes or the symbols `Tokens`,
//!   `Seqs`, `Blocks`, `Rows`; `strides` those of a view, absent where the value is dense; `after` the number of nodes
//!   that stand before the declaration, absent where it is 0.
//! - `nodes`, in an order in which they can run: `op` is the op's name and `attrs` its attributes as in the text form, of
//!   which whole numbers, truth values and lists of whole numbers may stand as such. A fused node has `region`, its kind,
//!   and `graph` instead. `inputs` are names. Of `outputs`, `dtype` and `shape` may be left out; where they stand, they
//!   must be those that the op gives.
//! - `outputs`: names, in order.
//!
//! Reading gives back the same graph, down to the numbers of its values. What is read is untrusted: it has limits, and an
//! error names the place in the document.

mod form;
mod read;
mod write;

pub use read::{JsonError, MAX_BYTES, MAX_VALUES, from_json};
pub use write::to_json;

/// The version that is written and read.
pub const VERSION: u32 = 2;
