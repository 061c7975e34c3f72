//! Operations by their names, as descriptions of graphs that come from elsewhere have them.

use super::builder::{KernelGraph, KernelGraphResult, operands};
use super::error::GraphError;
use super::norms::NORM_EPS;
use super::shapes::SplitBy;
use yirage_ir::ValueId;

/// What a description says of an operation beside its operands.
#[derive(Clone, PartialEq, Debug)]
pub enum OpAttribute {
    /// A number; sizes and dimensions are whole ones.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Several sizes or dimensions.
    Integers(Vec<i64>),
}

/// Names of operations with the operands and the attributes that each takes.
const OPERATIONS: [(&str, &str, &[&str]); 26] = [
    ("exp", "A", &[]),
    ("silu", "A", &[]),
    ("gelu", "A", &[]),
    ("relu", "A", &[]),
    ("sqrt", "A", &[]),
    ("square", "A", &[]),
    ("sigmoid", "A", &[]),
    ("log", "A", &[]),
    ("clamp", "A", &["min_val", "max_val"]),
    ("mul_scalar", "A", &["scalar"]),
    ("add", "A, B", &[]),
    ("sub", "A, B", &[]),
    ("mul", "A, B", &[]),
    ("div", "A, B", &[]),
    ("pow", "A, B", &[]),
    ("matmul", "A, B", &[]),
    ("reduction", "A", &["dim"]),
    ("max", "A", &["dim"]),
    ("softmax", "A", &["dim"]),
    ("rms_norm", "A or A, weight", &["normalized_shape", "eps"]),
    ("layer_norm", "A or A, weight or A, weight, bias", &["normalized_shape", "eps"]),
    ("attention", "q, k, v", &["causal", "scale"]),
    ("concat", "one or more", &["dim"]),
    ("split", "A", &["sizes", "dim"]),
    ("reshape", "A", &["dims"]),
    ("permute", "A", &["dims"]),
];

impl KernelGraph {
    /// Names of the operations that [`KernelGraph::named_op`] knows.
    pub fn operations() -> impl Iterator<Item = &'static str> {
        OPERATIONS.iter().map(|(name, ..)| *name)
    }

    /// The operation `name` of these operands; attributes have the names of the arguments of the method that is called so.
    ///
    /// Norms have the shape of their weight as `normalized_shape` where none is given, the last dimension without a weight,
    /// and an `eps` of 1e-5. All but `split` have one result.
    ///
    /// # Errors
    /// [`GraphError::NoOperation`] for another name; another number of operands, an attribute that is missing, of another
    /// kind or not the operation's; and what the method of that name says.
    pub fn named_op(
        &mut self,
        name: &str,
        ins: &[ValueId],
        attributes: &[(String, OpAttribute)],
    ) -> Result<Vec<ValueId>, GraphError> {
        let found = OPERATIONS.iter().find(|(known, ..)| *known == name);
        let &(what, wanted, known) = found.ok_or_else(|| {
            let known = Self::operations().collect::<Vec<_>>().join(", ");
            GraphError::NoOperation { name: name.to_owned(), known }
        })?;
        let given = OpAttributes { what, known, attributes };
        given.check()?;
        let one = match (what, ins) {
            ("exp", &[a]) => self.exp(a),
            ("silu", &[a]) => self.silu(a),
            ("gelu", &[a]) => self.gelu(a),
            ("relu", &[a]) => self.relu(a),
            ("sqrt", &[a]) => self.sqrt(a),
            ("square", &[a]) => self.square(a),
            ("sigmoid", &[a]) => self.sigmoid(a),
            ("log", &[a]) => self.log(a),
            ("clamp", &[a]) => self.clamp(a, given.number("min_val")? as f32, given.number("max_val")? as f32),
            ("mul_scalar", &[a]) => self.mul_scalar(a, given.number("scalar")? as f32),
            ("add", &[a, b]) => self.add(a, b),
            ("sub", &[a, b]) => self.sub(a, b),
            ("mul", &[a, b]) => self.mul(a, b),
            ("div", &[a, b]) => self.div(a, b),
            ("pow", &[a, b]) => self.pow(a, b),
            ("matmul", &[a, b]) => self.matmul(a, b),
            ("reduction", &[a]) => self.reduction(a, given.integer("dim")?),
            ("max", &[a]) => self.max(a, given.integer("dim")?),
            ("softmax", &[a]) => self.softmax(a, given.integer("dim")?),
            ("rms_norm" | "layer_norm", &[a, ref vectors @ ..]) if vectors.len() <= 2 => {
                self.named_norm(&given, a, vectors, wanted)
            }
            ("attention", &[q, k, v]) => {
                let causal = given.flag("causal")?.unwrap_or(false);
                let scale = given.maybe_number("scale")?.map(|scale| scale as f32);
                self.attention(q, k, v, causal, scale)
            }
            ("concat", list) if !list.is_empty() => self.concat(list, given.integer("dim")?),
            ("split", &[a]) => {
                let sizes = given.sizes("sizes")?.ok_or_else(|| given.missing("sizes"))?;
                return self.split(a, SplitBy::Sizes(&sizes), given.integer("dim")?);
            }
            ("reshape", &[a]) => self.reshape(a, given.integers("dims")?.ok_or_else(|| given.missing("dims"))?),
            ("permute", &[a]) => self.permute(a, given.integers("dims")?.ok_or_else(|| given.missing("dims"))?),
            _ => Err(self.other_operands(what, ins, wanted)),
        };
        Ok(vec![one?])
    }

    fn named_norm(
        &mut self,
        given: &OpAttributes<'_>,
        a: ValueId,
        vectors: &[ValueId],
        wanted: &str,
    ) -> KernelGraphResult {
        let shape = match (given.sizes("normalized_shape")?, vectors.first()) {
            (Some(shape), _) => shape,
            (None, Some(&weight)) => self.dims(weight)?,
            (None, None) => self.dims(a)?.into_iter().next_back().into_iter().collect(),
        };
        let eps = given.maybe_number("eps")?.map_or(NORM_EPS, |eps| eps as f32);
        match (given.what, vectors) {
            ("layer_norm", _) => self.layer_norm(a, &shape, vectors.first().copied(), vectors.get(1).copied(), eps),
            (_, [] | [_]) => self.scaled_rms_norm(a, &shape, vectors.first().copied(), eps),
            _ => Err(self.other_operands(given.what, &[&[a], vectors].concat(), wanted)),
        }
    }

    /// Another number of operands than the operation takes.
    fn other_operands(&self, what: &'static str, ins: &[ValueId], wanted: &str) -> GraphError {
        match ins.iter().map(|&id| self.ty(what, id)).collect::<Result<Vec<_>, _>>() {
            Ok(types) => operands(what, &types, format!("{} operands are given; wanted are {wanted}", ins.len())),
            Err(error) => error,
        }
    }
}

/// The attributes of one operation.
struct OpAttributes<'a> {
    what: &'static str,
    known: &'static [&'static str],
    attributes: &'a [(String, OpAttribute)],
}

impl<'a> OpAttributes<'a> {
    /// Whether each is the operation's.
    fn check(&self) -> Result<(), GraphError> {
        let Some((name, _)) = self.attributes.iter().find(|(name, _)| !self.known.contains(&name.as_str())) else {
            return Ok(());
        };
        let known = if self.known.is_empty() { "it has none".into() } else { self.known.join(", ") };
        Err(GraphError::Attribute {
            what: self.what,
            name: name.clone(),
            wanted: format!("no such attribute: {known}"),
        })
    }

    fn get(&self, name: &'static str) -> Option<&'a OpAttribute> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn missing(&self, name: &'static str) -> GraphError {
        GraphError::Attribute { what: self.what, name: name.into(), wanted: "it is missing".into() }
    }

    fn other(&self, name: &'static str, wanted: &str) -> GraphError {
        let text = format!("{wanted} wanted, {:?} given", self.get(name));
        GraphError::Attribute { what: self.what, name: name.into(), wanted: text }
    }

    fn maybe_number(&self, name: &'static str) -> Result<Option<f64>, GraphError> {
        match self.get(name) {
            None => Ok(None),
            Some(OpAttribute::Number(number)) => Ok(Some(*number)),
            Some(_) => Err(self.other(name, "a number")),
        }
    }

    fn number(&self, name: &'static str) -> Result<f64, GraphError> {
        self.maybe_number(name)?.ok_or_else(|| self.missing(name))
    }

    fn integer(&self, name: &'static str) -> Result<i64, GraphError> {
        let number = self.number(name)?;
        let whole = number.fract() == 0.0 && number.abs() <= f64::from(u32::MAX);
        if whole { Ok(number as i64) } else { Err(self.other(name, "a whole number of less than 33 bits")) }
    }

    fn integers(&self, name: &'static str) -> Result<Option<&'a [i64]>, GraphError> {
        match self.get(name) {
            None => Ok(None),
            Some(OpAttribute::Integers(list)) => Ok(Some(list)),
            Some(_) => Err(self.other(name, "a list of whole numbers")),
        }
    }

    fn sizes(&self, name: &'static str) -> Result<Option<Vec<u32>>, GraphError> {
        let Some(given) = self.integers(name)? else { return Ok(None) };
        let sizes = given.iter().map(|&n| u32::try_from(n)).collect::<Result<_, _>>();
        sizes.map(Some).map_err(|_| self.other(name, "sizes from 0 to 2^32 - 1"))
    }

    fn flag(&self, name: &'static str) -> Result<Option<bool>, GraphError> {
        match self.get(name) {
            None => Ok(None),
            Some(OpAttribute::Flag(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.other(name, "true or false")),
        }
    }
}
