//! What a graph is given and what it gives, by name and in order.

use crate::array::HostArray;
use crate::call_error::CallError;
use std::collections::{HashMap, HashSet};
use yirage_ir::{Dim, Dims, Graph, Sym, Type, ValueId, ValueSource};
use yirage_plan::Plan;

/// What a graph is given and what it gives. Sizes may be symbols.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interface {
    /// The graph's name.
    pub graph: String,
    /// What each call is given, in order.
    pub step_inputs: Vec<(String, Type)>,
    /// What is given once.
    pub weights: Vec<(String, Type)>,
    /// What outlives a call: cached keys and values, by the type of a block.
    pub kv_caches: Vec<(String, Type)>,
    /// What each call gives, in order.
    pub outputs: Vec<(String, Type)>,
}

impl Interface {
    /// That of a graph.
    pub fn of(graph: &Graph) -> Interface {
        let named = |id: ValueId| (graph.value(id).name.clone(), graph.ty(id).clone());
        Interface {
            graph: graph.name.clone(),
            step_inputs: graph.inputs_of(ValueSource::StepInput).map(named).collect(),
            weights: graph.inputs_of(ValueSource::Weight).map(named).collect(),
            kv_caches: graph.inputs_of(ValueSource::KvCache).map(named).collect(),
            outputs: graph.outputs.iter().map(|&id| named(id)).collect(),
        }
    }

    /// Whether it can be called with arrays.
    ///
    /// # Errors
    /// [`CallError::Unsupported`] where there are KV caches.
    pub fn check_callable(&self) -> Result<(), CallError> {
        self.check_kv_caches(|_| false)
    }

    /// Whether each of its KV caches is given.
    pub(crate) fn check_kv_caches(&self, given: impl Fn(&str) -> bool) -> Result<(), CallError> {
        let Some((cache, _)) = self.kv_caches.iter().find(|(name, _)| !given(name)) else { return Ok(()) };
        Err(CallError::Unsupported {
            what: format!("calling the graph `{}` with its KV cache `{cache}`", self.graph),
            why: "caches are the engine's; a graph that is called has step inputs and weights alone",
        })
    }

    /// Whether a plan takes and gives this: it reads no step input, weight or KV cache that is not here, and its outputs are of these
    /// types.
    ///
    /// # Errors
    /// [`CallError::Plan`]: the first thing that it has otherwise.
    pub fn check(&self, plan: &Plan) -> Result<(), CallError> {
        self.check_as_rank(plan, 1)
    }

    /// [`Interface::check`] of a plan for one of so many ranks: of a weight it may read the rank's rows, of a KV cache the rank's heads.
    ///
    /// # Errors
    /// As [`Interface::check`].
    pub(crate) fn check_as_rank(&self, plan: &Plan, ranks: u32) -> Result<(), CallError> {
        let wrong = |what: String| CallError::Plan { graph: self.graph.clone(), what };
        let kinds = [
            (ValueSource::StepInput, "step input", &self.step_inputs),
            (ValueSource::Weight, "weight", &self.weights),
            (ValueSource::KvCache, "KV cache", &self.kv_caches),
        ];
        for (source, kind, known) in kinds {
            let known: HashMap<&str, &Type> = known.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
            for value in plan.graph.inputs_of(source).map(|id| plan.graph.value(id)) {
                let here = known.get(value.name.as_str());
                let divided = match source {
                    ValueSource::Weight => Some(0),
                    ValueSource::KvCache => Some(1),
                    _ => None,
                };
                if here.is_none_or(|ty| **ty != value.ty && !is_part(&value.ty, ty, divided, ranks)) {
                    let wanted = here.map_or("no such one is here".into(), |ty| format!("it is {ty} here"));
                    return Err(wrong(format!("it reads the {kind} `{}` of {}, and {wanted}", value.name, value.ty)));
                }
            }
        }
        let given: Vec<&Type> = plan.graph.outputs.iter().map(|&id| plan.graph.ty(id)).collect();
        let wanted: Vec<&Type> = self.outputs.iter().map(|(_, ty)| ty).collect();
        if given != wanted {
            let list = |types: &[&Type]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(wrong(format!("it gives {}, and {} is wanted", list(&given), list(&wanted))));
        }
        Ok(())
    }

    /// The sizes that symbols have in these inputs, which are of this interface's types otherwise. A symbol that no input
    /// has is 0.
    ///
    /// # Errors
    /// [`CallError::Count`], [`CallError::Type`], and [`CallError::Size`] for a symbol that two inputs give two sizes.
    pub fn dims(&self, inputs: &[HostArray]) -> Result<Dims, CallError> {
        self.check_count(inputs.len())?;
        let (mut dims, mut from): (Dims, Vec<(Sym, &str)>) = (Dims::default(), Vec::new());
        for ((name, ty), array) in self.step_inputs.iter().zip(inputs) {
            for (dim, given) in ty.shape.iter().zip(&array.ty().shape) {
                let (Dim::Sym(sym), Dim::Const(given)) = (*dim, *given) else { continue };
                match from.iter().find(|(known, _)| *known == sym) {
                    None => {
                        dims.set(sym, given);
                        from.push((sym, name));
                    }
                    Some((_, first)) if dims.get(sym) != given => {
                        return Err(CallError::Size {
                            symbol: sym.name(),
                            first: (*first).to_owned(),
                            has: dims.get(sym),
                            input: name.clone(),
                            given,
                        });
                    }
                    Some(_) => {}
                }
            }
        }
        for ((name, ty), array) in self.step_inputs.iter().zip(inputs) {
            check("input", name, &fixed(ty, &dims), array)?;
        }
        Ok(dims)
    }

    /// Whether so many inputs are what it takes.
    pub(crate) fn check_count(&self, given: usize) -> Result<(), CallError> {
        if given == self.step_inputs.len() {
            return Ok(());
        }
        let names: Vec<String> = self.step_inputs.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
        Err(CallError::Count {
            graph: self.graph.clone(),
            given,
            wanted: self.step_inputs.len(),
            names: names.join(", "),
        })
    }

    /// Whether these are its weights: each once, of its type, and no other.
    ///
    /// # Errors
    /// [`CallError::Weight`], [`CallError::Type`].
    pub fn check_weights(&self, given: &[(String, HostArray)]) -> Result<(), CallError> {
        let known: HashMap<&str, &Type> = self.weights.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
        let mut here = HashSet::new();
        for (name, array) in given {
            let wrong = |why| Err(CallError::Weight { name: name.clone(), why });
            let Some(ty) = known.get(name.as_str()) else { return wrong("the graph has none of that name") };
            if !here.insert(name.as_str()) {
                return wrong("it is given twice");
            }
            check("the weight", name, ty, array)?;
        }
        match self.weights.iter().find(|(name, _)| !here.contains(name.as_str())) {
            Some((name, _)) => Err(CallError::Weight { name: name.clone(), why: "it is not given" }),
            None => Ok(()),
        }
    }

    /// The same with numbers for the symbols.
    #[must_use]
    pub fn fixed(&self, dims: &Dims) -> Interface {
        let all = |of: &[(String, Type)]| of.iter().map(|(name, ty)| (name.clone(), fixed(ty, dims))).collect();
        Interface {
            graph: self.graph.clone(),
            step_inputs: all(&self.step_inputs),
            weights: self.weights.clone(),
            kv_caches: self.kv_caches.clone(),
            outputs: all(&self.outputs),
        }
    }
}

/// Whether an array lies as a value of type `wanted` does.
pub(crate) fn check(what: &'static str, name: &str, wanted: &Type, array: &HostArray) -> Result<(), CallError> {
    if array.fits(wanted) {
        return Ok(());
    }
    let (wanted, given) = (wanted.to_string(), array.ty().to_string());
    Err(CallError::Type { what, name: name.to_owned(), wanted, given })
}

/// Whether a type is what each of so many ranks has of one that is divided along a dimension.
fn is_part(part: &Type, whole: &Type, divided: Option<usize>, ranks: u32) -> bool {
    let mut shape = whole.shape.clone();
    match divided.and_then(|axis| shape.get_mut(axis)) {
        Some(Dim::Const(n)) if ranks > 1 && n.is_multiple_of(ranks) => *n /= ranks,
        _ => return false,
    }
    *part == Type { shape, ..whole.clone() }
}

/// The type with numbers for its symbols.
fn fixed(ty: &Type, dims: &Dims) -> Type {
    let size = |dim: &Dim| match dim {
        Dim::Const(n) => Dim::Const(*n),
        Dim::Sym(sym) => Dim::Const(dims.get(*sym)),
    };
    Type { shape: ty.shape.iter().map(size).collect(), ..ty.clone() }
}
