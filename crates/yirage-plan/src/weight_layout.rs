//! Layouts of weights: what a target has of them, by what a weight is for and its format.

use std::fmt;
use yirage_ir::{DType, Format};

/// A layout of weights, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WeightLayout(&'static str);

/// What a weight is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightRole {
    /// Products with weights read it, and look-ups in the same table; and every weight of a format of blocks.
    Matmul,
    /// General products read it, themselves or through views, and nothing else.
    Factor,
    /// All else.
    Plain,
}

/// A layout of weights that a target has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightLayoutFacts {
    /// The layout.
    pub layout: WeightLayout,
    /// What weights are for that may lie so.
    pub roles: Vec<WeightRole>,
    /// Their formats.
    pub formats: Vec<Format>,
}

impl WeightLayout {
    /// The file's order, row after row of plain values: a device may hold them as f32.
    pub const ROWS: WeightLayout = WeightLayout("rows");

    /// The file's order with elements that stay what they are in the file: floats of 16 bits that take the bytes of 16 bits
    /// each time a general product reads them.
    pub const ELEMENTS: WeightLayout = WeightLayout("elements");

    /// A layout of a device's own. Another layout has another name.
    pub const fn named(name: &'static str) -> WeightLayout {
        WeightLayout(name)
    }

    /// The name, as weight plans have it.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl WeightLayoutFacts {
    /// A layout for weights of these roles and formats.
    pub fn new(layout: WeightLayout, roles: &[WeightRole], formats: &[Format]) -> WeightLayoutFacts {
        WeightLayoutFacts { layout, roles: roles.to_vec(), formats: formats.to_vec() }
    }

    /// Rows for weights of these roles, of any format.
    pub fn rows(roles: &[WeightRole]) -> WeightLayoutFacts {
        WeightLayoutFacts::new(WeightLayout::ROWS, roles, Format::ALL)
    }

    /// Whether a weight of these elements may lie so. What is no stored format has no place in any: loading says so.
    pub fn holds(&self, dtype: DType) -> bool {
        !matches!(dtype, DType::Stored(format) if !self.formats.contains(&format))
    }

    /// Whether matrices of products lie so, so that all that read one read it as the same matrices.
    pub fn has_matrices(&self) -> bool {
        self.roles.contains(&WeightRole::Matmul)
    }
}

impl fmt::Display for WeightLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
