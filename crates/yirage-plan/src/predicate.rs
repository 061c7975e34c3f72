//! What a kernel wants of an op beside its operands' types: facts that a rule states and a refusal repeats.

use std::fmt;
use yirage_ir::expr::{Func, Term};
use yirage_ir::{DType, Dim, Dims, Graph, Node, Op};

/// A number that an op or its operands have.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Quantity {
    /// An attribute.
    Attribute(String),
    /// A size of an input.
    Size {
        /// Which input.
        input: usize,
        /// Which of its sizes, from the innermost one: 0 is a row's width.
        from_last: usize,
    },
}

/// What a number may be. A size that each step supplies is no fixed number: it is as large as the plan's largest.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NumberTest {
    /// A fixed multiple of this.
    MultipleOf(u32),
    /// At most this, in every step.
    AtMost(u32),
    /// One of these, and fixed.
    OneOf(Vec<u32>),
}

/// A fact that a kernel wants.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Predicate {
    /// An attribute has this value, as in text forms.
    Attribute(String, String),
    /// A number is as the test says.
    Number(Quantity, NumberTest),
    /// There are at most so many inputs.
    Inputs(usize),
    /// Its expression calls no function but these.
    Functions(Vec<Func>),
    /// Each output is of one of these types.
    Outputs(Vec<DType>),
}

/// A number as it is.
enum QuantityValue {
    Fixed(u64),
    /// Given by each step, at most this.
    UpTo(u64),
}

impl Predicate {
    /// Whether a node of one op is so in a plan for these largest sizes.
    ///
    /// # Errors
    /// What it is instead.
    pub(crate) fn check(&self, op: &Op, graph: &Graph, node: &Node, bucket: &Dims) -> Result<(), String> {
        match self {
            Predicate::Attribute(name, value) => match attribute(op, name) {
                Some(got) if got == *value => Ok(()),
                got => Err(format!("{name}={}", got.unwrap_or_else(|| "nothing".into()))),
            },
            Predicate::Number(quantity, test) => quantity.check(test, op, graph, node, bucket),
            Predicate::Inputs(most) if node.ins.len() <= *most => Ok(()),
            Predicate::Inputs(_) => Err(format!("{} inputs", node.ins.len())),
            Predicate::Functions(known) => match calls(op).find(|func| !known.contains(func)) {
                None => Ok(()),
                Some(func) => Err(format!("the function `{}`", func.name())),
            },
            Predicate::Outputs(dtypes) => {
                let other = node.outs.iter().map(|&id| graph.ty(id)).find(|ty| !dtypes.contains(&ty.dtype));
                other.map_or(Ok(()), |ty| Err(format!("an output of {ty}")))
            }
        }
    }
}

fn attribute(op: &Op, name: &str) -> Option<String> {
    op.attrs().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The functions of an op's expression.
fn calls(op: &Op) -> impl Iterator<Item = Func> {
    let terms = if let Op::Map(map) = op { map.expr.terms() } else { &[] };
    terms.iter().filter_map(|term| if let Term::Call(func, _) = term { Some(*func) } else { None })
}

impl Quantity {
    fn check(&self, test: &NumberTest, op: &Op, graph: &Graph, node: &Node, bucket: &Dims) -> Result<(), String> {
        let number = self.of(op, graph, node, bucket).ok_or_else(|| format!("an operand without {self}"))?;
        let holds = match (test, &number) {
            (NumberTest::AtMost(most), QuantityValue::Fixed(n) | QuantityValue::UpTo(n)) => *n <= u64::from(*most),
            (NumberTest::MultipleOf(of), QuantityValue::Fixed(n)) => n.is_multiple_of(u64::from(*of)),
            (NumberTest::OneOf(set), QuantityValue::Fixed(n)) => set.iter().any(|of| u64::from(*of) == *n),
            (NumberTest::MultipleOf(_) | NumberTest::OneOf(_), QuantityValue::UpTo(_)) => false,
        };
        if holds {
            return Ok(());
        }
        Err(match number {
            QuantityValue::Fixed(n) => format!("{self} = {n}"),
            QuantityValue::UpTo(n) => format!("{self} up to {n}, as each step has it"),
        })
    }

    fn of(&self, op: &Op, graph: &Graph, node: &Node, bucket: &Dims) -> Option<QuantityValue> {
        match self {
            Quantity::Attribute(name) => attribute(op, name)?.parse().ok().map(QuantityValue::Fixed),
            Quantity::Size { input, from_last } => {
                let shape = &graph.ty(*node.ins.get(*input)?).shape;
                Some(match shape.iter().rev().nth(*from_last)? {
                    Dim::Const(n) => QuantityValue::Fixed(u64::from(*n)),
                    dim => QuantityValue::UpTo(dim.get(bucket) as u64),
                })
            }
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Attribute(name) => f.write_str(name),
            Quantity::Size { input, from_last: 0 } => write!(f, "the width of input {input}"),
            Quantity::Size { input, from_last: 1 } => write!(f, "the rows of input {input}"),
            Quantity::Size { input, from_last } => write!(f, "size {from_last} from the last of input {input}"),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Attribute(name, value) => write!(f, "{name}={value}"),
            Predicate::Number(quantity, NumberTest::MultipleOf(n)) => write!(f, "{quantity} a multiple of {n}"),
            Predicate::Number(quantity, NumberTest::AtMost(n)) => write!(f, "{quantity} at most {n}"),
            Predicate::Number(quantity, NumberTest::OneOf(set)) => write!(f, "{quantity} {}", list(set)),
            Predicate::Inputs(most) => write!(f, "{most} inputs at most"),
            Predicate::Functions(known) => {
                write!(f, "the functions {}", list(&known.iter().map(|func| func.name()).collect::<Vec<_>>()))
            }
            Predicate::Outputs(dtypes) => write!(f, "outputs of {}", list(dtypes)),
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
fn list(of: &[impl fmt::Display]) -> String {
    let words: Vec<String> = of.iter().map(ToString::to_string).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => "nothing".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::{NodeKind, text};

    const BUCKET: Dims = Dims { tokens: 16, seqs: 1, blocks: 1, rows: 1 };

    /// What is said against the only node of a graph.
    fn refused(body: &str, predicate: &Predicate) -> Option<String> {
        let graph = text::parse(&format!("graph g {{ {body} }}")).unwrap();
        let node = &graph.nodes[0];
        let NodeKind::Op(op) = &node.kind else { unreachable!() };
        predicate.check(op, &graph, node, &BUCKET).err()
    }

    const LINEAR: &str =
        "input %x: f32[Tokens, 100] weight %w: f32[32, 100] %y = linear{groups=1}(%x, %w): f32[Tokens, 32]";
    const MAP: &str = "input %x: f32[4] %y = map{expr=\"exp(x0)\"}(%x): f32[4]";

    fn size(input: usize, from_last: usize, test: NumberTest) -> Predicate {
        Predicate::Number(Quantity::Size { input, from_last }, test)
    }

    #[test]
    fn fixed_sizes_are_tested() {
        use NumberTest::{AtMost, MultipleOf, OneOf};
        for (test, sentence) in
            [(MultipleOf(64), "a multiple of 64"), (AtMost(99), "at most 99"), (OneOf(vec![64, 128]), "64 or 128")]
        {
            let predicate = size(1, 0, test);
            assert_eq!(refused(LINEAR, &predicate), Some("the width of input 1 = 100".into()));
            assert_eq!(predicate.to_string(), format!("the width of input 1 {sentence}"));
        }
        for test in [MultipleOf(50), AtMost(100), OneOf(vec![7, 100])] {
            assert_eq!(refused(LINEAR, &size(1, 0, test)), None);
        }
        assert_eq!(refused(LINEAR, &size(5, 0, AtMost(1))), Some("an operand without the width of input 5".into()));
    }

    #[test]
    fn a_steps_sizes_are_as_large_as_the_plans() {
        use NumberTest::{AtMost, MultipleOf};
        assert_eq!(refused(LINEAR, &size(0, 1, AtMost(16))), None);
        let said = Some("the rows of input 0 up to 16, as each step has it".into());
        assert_eq!(refused(LINEAR, &size(0, 1, AtMost(15))), said);
        assert_eq!(refused(LINEAR, &size(0, 1, MultipleOf(1))), said);
    }

    #[test]
    fn attributes_functions_inputs_and_outputs_are_tested() {
        let groups = |test| Predicate::Number(Quantity::Attribute("groups".into()), test);
        assert_eq!(refused(LINEAR, &groups(NumberTest::OneOf(vec![1]))), None);
        assert_eq!(refused(LINEAR, &groups(NumberTest::AtMost(0))), Some("groups = 1".into()));
        assert_eq!(refused(LINEAR, &Predicate::Attribute("groups".into(), "2".into())), Some("groups=1".into()));
        assert_eq!(refused(LINEAR, &Predicate::Inputs(1)), Some("2 inputs".into()));
        assert_eq!(refused(MAP, &Predicate::Functions(vec![Func::Exp])), None);
        assert_eq!(refused(MAP, &Predicate::Functions(vec![Func::Log])), Some("the function `exp`".into()));
        assert_eq!(refused(MAP, &Predicate::Outputs(vec![DType::I32])), Some("an output of f32[4]".into()));
        let sentence = Predicate::Outputs(vec![DType::F32, DType::I32, DType::U32]).to_string();
        assert_eq!(sentence, "outputs of f32, i32 or u32");
    }
}
