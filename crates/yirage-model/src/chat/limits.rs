//! Every budget a chat template is held to, and why. Templates come with model files and are not trusted; a budget that
//! runs out is a typed error. Two kinds exist: what one parse may build, and what one rendering may spend.

use std::time::Duration;

/// Most templates of one model. Usual is one, some have three.
pub const MAX_TEMPLATES: usize = 64;
/// Longest template source, in bytes. The longest published ones have some 20 KB.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// Deepest nesting of brackets, operators in front and blocks. Published templates nest 10 deep. The recursion of the
/// parser is bounded by this.
pub const MAX_NESTING: u32 = 100;
/// Deepest tree of one expression: a chain of operators, filters, attributes or calls adds one per link. Published
/// templates reach some 30. Whatever walks or drops a tree recurses this deep.
pub const MAX_EXPRESSION_DEPTH: u32 = 200;
/// Deepest nesting of a value: lists in lists, objects in objects. JSON that reaches a template is at most 128 deep.
/// Whatever writes, compares or drops a value recurses this deep.
pub const MAX_VALUE_DEPTH: u32 = 200;
/// Deepest recursion of a rendering, in nodes of the tree: a macro that calls itself takes some five per call.
pub const MAX_RECURSION: u32 = 1_000;
/// Stack of the thread that parses or renders: several times what [`MAX_RECURSION`] takes in a build with a sanitizer.
/// Only the part that is used takes memory.
pub const STACK_BYTES: usize = 32 << 20;
/// Bytes that a rendering may hold at one time: its copy of the conversation, its variables, its output. A conversation
/// of 1 MB takes some 5 MB.
pub const MAX_BYTES: usize = 128 << 20;
/// Steps of one rendering: one per node that is evaluated, per item that is visited, per 64 bytes that are read or
/// written. A conversation of 1,000 messages takes some 300,000.
pub const MAX_STEPS: u64 = 20_000_000;
/// Time of one rendering. The steps above take about a second, so this is met by machines that are very slow or busy.
pub const MAX_TIME: Duration = Duration::from_secs(5);
/// Steps of all trial renderings by which a template is asked what it reads, see [`super::TrialSteps`]. Those of published
/// templates take some 100,000. Steps and not time: a model must not lose its calls of tools because a machine was busy.
/// What is not found out by then is taken as usual.
pub const MAX_TRIAL_STEPS: u64 = 2_000_000;
/// Largest `range`: what the sandbox of the reference engine allows.
pub const MAX_RANGE: i128 = 100_000;
/// Widest field and longest fraction that a format may ask for.
pub const MAX_FIELD: usize = 4_096;
