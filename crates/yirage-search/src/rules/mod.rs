//! The rules, one file a family. [`RULES`] is the only place that names them all; its order decides which of two ways to
//! one graph is recorded, and nothing else.

mod combine;
mod constants;
mod distribute;
mod factor;
mod functions;
mod join;
mod lower;
mod reassociate;
mod reductions;
mod scale;
mod shapes;
mod transpose;
mod views;

use super::rule::Rule;

/// Raise it when a rule begins to make something else: results that were kept before are then searched again.
pub const RULES_VERSION: u32 = 2;

/// All rules, in order.
pub const RULES: &[Rule] = &[
    lower::NAMED,
    constants::FOLD,
    constants::DIVISION,
    functions::FORMS,
    scale::PAST_PRODUCT,
    scale::INTO_PRODUCT,
    scale::PAST_SUM,
    combine::SCALES,
    distribute::PRODUCTS,
    factor::PRODUCTS,
    factor::ELEMENTS,
    join::ALONG_SUM,
    join::SHARED_LEFT,
    join::SHARED_RIGHT,
    reassociate::PRODUCTS,
    transpose::PRODUCTS,
    reductions::SUMS,
    reductions::NESTED,
    reductions::MEAN_SQUARE,
    reductions::SPLIT,
    views::CANCEL,
    views::PAST_MAPS,
    views::INTO_PRODUCTS,
    views::PARTS,
];
