//! Which nodes a kernel runs, as data: for each op what each of its inputs may be. Selection reads nothing else.

use crate::kv_cache_layout::KvCacheLayout;
use crate::predicate::Predicate;
use crate::weight_layout::WeightLayout;
use std::fmt;
use yirage_ir::{ActivationFormat, DType, Format};

/// Where an operand lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperandKind {
    /// Computed: in the plan's arena, or in a worker's own memory inside a region.
    Arena,
    /// Given from outside for each step.
    StepInput,
    /// A weight.
    Weight(WeightLayout),
    /// A cache state.
    KvCache(KvCacheLayout),
}

/// How an op reads an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reading {
    /// Row t for row t of what it makes.
    ByRow,
    /// All of it for each row.
    Whole,
    /// Either of the two.
    Either,
}

/// One way in which an input may be given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandConstraint {
    /// Where it lies.
    pub kind: OperandKind,
    /// Its element types.
    pub dtypes: Vec<DType>,
    /// The layout of activations that its numbers lie in; `None` where the elements are the numbers.
    pub activation_format: Option<ActivationFormat>,
    /// How it is read.
    pub reading: Reading,
    /// Whether it may have strides where it lies. A weight's strides end when it is loaded.
    pub strided: bool,
    /// Whether one that is larger than a binding is read in parts ([`ValueParts`](crate::ValueParts)).
    pub in_parts: bool,
}

/// What a kernel may be given for an op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpRule {
    /// The op.
    pub op: String,
    /// What else has to be so.
    pub wants: Vec<Predicate>,
    /// For each input the ways it may be given; the last also for all inputs that follow it.
    pub inputs: Vec<Vec<OperandConstraint>>,
}

impl OperandConstraint {
    /// A dense operand of these element types.
    pub fn new(kind: OperandKind, dtypes: impl IntoIterator<Item = impl Into<DType>>) -> OperandConstraint {
        let dtypes = dtypes.into_iter().map(Into::into).collect();
        OperandConstraint {
            kind,
            dtypes,
            activation_format: None,
            reading: Reading::Either,
            strided: false,
            in_parts: false,
        }
    }

    /// Computed activations in this layout.
    pub fn quantized(layout: ActivationFormat) -> OperandConstraint {
        OperandConstraint {
            activation_format: Some(layout),
            ..OperandConstraint::new(OperandKind::Arena, [layout.info().dtype])
        }
    }

    /// Whatever type inference allows, wherever it lies, of weights and caches in these layouts: what an evaluation of the ops'
    /// meaning takes.
    pub fn any(layouts: &[WeightLayout], caches: &[KvCacheLayout]) -> Vec<OperandConstraint> {
        let stored = || Format::ALL.iter().map(|&f| DType::from(f));
        let floats = [Format::F32, Format::F16, Format::BF16].map(DType::from);
        let plain = || floats.into_iter().chain([DType::I32, DType::U32, DType::Bool]);
        let mut ways = vec![
            OperandConstraint::new(OperandKind::Arena, plain()),
            OperandConstraint::new(OperandKind::StepInput, plain()).with_strides(),
            OperandConstraint::new(OperandKind::KvCache(KvCacheLayout::STATES), [Format::F32]),
        ];
        ways.extend(caches.iter().map(|&layout| OperandConstraint::new(OperandKind::KvCache(layout), stored())));
        ways.extend(layouts.iter().map(|&layout| OperandConstraint::new(OperandKind::Weight(layout), stored())));
        ways.extend(ActivationFormat::ALL.iter().copied().map(OperandConstraint::quantized));
        ways
    }

    /// Also where it has strides.
    pub fn with_strides(self) -> OperandConstraint {
        OperandConstraint { strided: true, ..self }
    }

    /// Also where it is larger than a binding.
    pub fn with_parts(self) -> OperandConstraint {
        OperandConstraint { in_parts: true, ..self }
    }

    /// Whether an operand is given so.
    pub(crate) fn accepts(&self, given: &OperandForm) -> bool {
        let read = match self.reading {
            Reading::ByRow => !given.whole,
            Reading::Whole => given.whole,
            Reading::Either => true,
        };
        let lies = self.kind == given.kind && (self.strided || !given.strided);
        read && lies && self.activation_format == given.activation_format && self.dtypes.contains(&given.dtype)
    }
}

impl OpRule {
    /// A rule for an op, whatever its attributes and sizes.
    pub fn new(op: &str, inputs: Vec<Vec<OperandConstraint>>) -> OpRule {
        OpRule { op: op.into(), wants: Vec::new(), inputs }
    }

    /// Only where this attribute has this value.
    pub fn when(self, attr: &str, value: impl fmt::Display) -> OpRule {
        self.wanting(Predicate::Attribute(attr.into(), value.to_string()))
    }

    /// Only where this is so.
    pub fn wanting(mut self, predicate: Predicate) -> OpRule {
        self.wants.push(predicate);
        self
    }

    /// The ways in which input `at` may be given.
    pub fn constraints(&self, at: usize) -> &[OperandConstraint] {
        self.inputs.get(at).or(self.inputs.last()).map_or(&[], Vec::as_slice)
    }
}

/// An operand as a node has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OperandForm {
    pub(crate) kind: OperandKind,
    pub(crate) dtype: DType,
    pub(crate) activation_format: Option<ActivationFormat>,
    pub(crate) whole: bool,
    pub(crate) strided: bool,
}

impl fmt::Display for OperandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperandKind::Arena => f.write_str("a computed value"),
            OperandKind::StepInput => f.write_str("a step input"),
            OperandKind::Weight(WeightLayout::ROWS) => f.write_str("a weight in plain rows"),
            OperandKind::Weight(WeightLayout::ELEMENTS) => f.write_str("a weight held element by element"),
            OperandKind::Weight(layout) => write!(f, "a weight in the layout {layout}"),
            OperandKind::KvCache(KvCacheLayout::STATES) => f.write_str("a recurrent state"),
            OperandKind::KvCache(layout) => write!(f, "a cache in the layout {layout}"),
        }
    }
}

impl fmt::Display for OperandForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements: &dyn fmt::Display = self.activation_format.as_ref().map_or(&self.dtype, |layout| layout);
        write!(f, "{} of {elements}", self.kind)?;
        f.write_str(if self.whole { " read as a whole" } else { "" })?;
        f.write_str(if self.strided { " with strides" } else { "" })
    }
}

impl fmt::Display for OperandConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Format::ALL.iter().all(|&x| self.dtypes.contains(&x.into()));
        let names: Vec<&str> =
            self.dtypes.iter().filter(|d| !all || !matches!(d, DType::Stored(_))).map(|d| d.name()).collect();
        write!(f, "{} of ", self.kind)?;
        if let Some(layout) = self.activation_format {
            return write!(f, "{layout}");
        }
        f.write_str(if all { "any stored format" } else { "" })?;
        f.write_str(if all && !names.is_empty() { " or " } else { "" })?;
        f.write_str(&names.join(" or "))?;
        f.write_str(match self.reading {
            Reading::ByRow => " read row by row",
            Reading::Whole => " read as a whole",
            Reading::Either => "",
        })
    }
}
