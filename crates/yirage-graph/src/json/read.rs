//! JSON to graph.

use super::VERSION;
use super::form::{Attributes, Document, GraphForm, InputForm, NodeForm, OutputForm, Size};
use std::collections::HashMap;
use thiserror::Error;
use yirage_ir::region::Tiled;
use yirage_ir::types::MAX_RANK;
use yirage_ir::verify::MAX_REGION_DEPTH;
use yirage_ir::{
    ActivationFormat, DType, Dim, Graph, GraphBuilder, NodeKind, Op, Region, RegionKind, Sym, Type, ValueSource,
};

/// Most bytes of a document.
pub const MAX_BYTES: usize = 16 << 20;

/// Most inputs and nodes of a document, those within regions counted.
pub const MAX_VALUES: usize = 1 << 17;

/// Why a text is no graph.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum JsonError {
    /// More bytes than are read.
    #[error("the document has {bytes} bytes, {MAX_BYTES} are the most; save parts of the graph")]
    Bytes {
        /// How many there are.
        bytes: usize,
    },
    /// A version of the form that is not known.
    #[error(
        "the document has version {version} of `yirage-graph`, this program reads version {VERSION}; save the graph anew with this program, or rewrite the file by `cargo xtask migrate-text FILE`"
    )]
    Version {
        /// The one given.
        version: u32,
    },
    /// Something is wrong at a place in the document.
    #[error("{path}: {what}")]
    At {
        /// The place: `graph.nodes[3].inputs[0]`.
        path: String,
        /// What is wrong there.
        what: String,
    },
}

/// The graph of a document.
///
/// # Errors
/// No JSON, another version, more than the limits allow, and everything that makes no sound graph, with its place.
pub fn from_json(text: &str) -> Result<Graph, JsonError> {
    if text.len() > MAX_BYTES {
        return Err(JsonError::Bytes { bytes: text.len() });
    }
    let mut source = serde_json::Deserializer::from_str(text);
    let document: Document = serde_path_to_error::deserialize(&mut source).map_err(|e| {
        // What is no JSON has no fields that a path could name.
        let form = e.inner().is_data();
        let path = if form { e.path().to_string() } else { "no JSON, which `to_json` writes".into() };
        at(path, e.inner().to_string())
    })?;
    source.end().map_err(|e| at("the end".into(), e.to_string()))?;
    if document.version != VERSION {
        return Err(JsonError::Version { version: document.version });
    }
    JsonGraphReader { remaining: MAX_VALUES }.graph(document.graph, "graph", 0)
}

fn at(path: String, what: impl Into<String>) -> JsonError {
    JsonError::At { path, what: what.into() }
}

struct JsonGraphReader {
    /// Inputs and nodes that may still come.
    remaining: usize,
}

/// What has been declared of a graph.
struct GraphScope {
    builder: GraphBuilder,
    names: HashMap<String, yirage_ir::ValueId>,
}

impl JsonGraphReader {
    fn graph(&mut self, form: GraphForm, path: &str, depth: usize) -> Result<Graph, JsonError> {
        if depth > MAX_REGION_DEPTH {
            return Err(at(path.into(), format!("regions nest deeper than {MAX_REGION_DEPTH}")));
        }
        let wanted = form.inputs.len().saturating_add(form.nodes.len());
        self.remaining = self
            .remaining
            .checked_sub(wanted)
            .ok_or_else(|| at(path.into(), format!("the document has more than {MAX_VALUES} inputs and nodes")))?;
        let mut scope = GraphScope { builder: GraphBuilder::new(form.name), names: HashMap::new() };
        let nodes = form.nodes.len();
        if let Some((i, input)) = form.inputs.iter().enumerate().find(|(_, input)| input.after > nodes) {
            return Err(at(format!("{path}.inputs[{i}].after"), format!("{} of {nodes} nodes", input.after)));
        }
        let mut inputs = form.inputs.into_iter().enumerate().peekable();
        for (n, node) in form.nodes.into_iter().enumerate() {
            while let Some((i, input)) = inputs.next_if(|(_, input)| input.after <= n) {
                scope.input(input, &format!("{path}.inputs[{i}]"))?;
            }
            self.node(&mut scope, node, &format!("{path}.nodes[{n}]"), depth)?;
        }
        for (i, input) in inputs {
            scope.input(input, &format!("{path}.inputs[{i}]"))?;
        }
        for (i, name) in form.outputs.iter().enumerate() {
            let id = scope.find(name, || format!("{path}.outputs[{i}]"))?;
            scope.builder.output(id);
        }
        Ok(scope.builder.finish())
    }

    fn node(&mut self, scope: &mut GraphScope, form: NodeForm, path: &str, depth: usize) -> Result<(), JsonError> {
        let NodeForm { op, attrs, region, graph, block, inputs, outputs } = form;
        let kind = match (op, region, graph, block) {
            (Some(name), None, None, None) => match Op::from_attrs(&name, attrs.0) {
                None => return Err(at(format!("{path}.op"), format!("there is no op `{name}`"))),
                Some(op) => NodeKind::Op(op.map_err(|e| at(format!("{path}.attrs"), format!("{name}: {e}")))?),
            },
            (None, Some(name), Some(graph), block) => {
                let wrong = || at(format!("{path}.region"), format!("there is no kind of region `{name}`"));
                let kind = RegionKind::parse(&name).ok_or_else(wrong)?;
                let graph = self.graph(*graph, &format!("{path}.graph"), depth + 1)?;
                let block = block.map(|block| self.graph(*block, &format!("{path}.block"), depth + 1)).transpose()?;
                NodeKind::Region(Box::new(region_of(kind, graph, attrs, block, path)?))
            }
            _ => return Err(at(path.into(), "either `op` with its `attrs` wanted, or `region` and `graph`")),
        };
        let ins = inputs.iter().enumerate().map(|(i, name)| scope.find(name, || format!("{path}.inputs[{i}]")));
        let ins = ins.collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = outputs.iter().map(|o| o.name.clone()).collect();
        let made = scope.builder.node(kind, &ins, &names).map_err(|e| at(path.into(), e.to_string()))?;
        for (i, (id, output)) in made.into_iter().zip(outputs).enumerate() {
            declared(scope.builder.ty(id), &output, &format!("{path}.outputs[{i}]"))?;
            scope.names.insert(output.name, id);
        }
        Ok(())
    }
}

/// A region of its parts: of a tiled one, its `attrs` and what a block does after its loop.
fn region_of(
    kind: RegionKind,
    graph: Graph,
    attrs: Attributes,
    block: Option<Graph>,
    path: &str,
) -> Result<Region, JsonError> {
    match (kind, block) {
        (RegionKind::Tiled, Some(block)) => {
            let tiled = Tiled::from_attrs(attrs.0, block).map_err(|e| at(format!("{path}.attrs"), e.to_string()))?;
            Ok(Region::tiled(graph, tiled))
        }
        (RegionKind::Tiled, None) => Err(at(path.into(), "a tiled region wants `block`, what follows its loop")),
        (_, None) if attrs.0.is_empty() => Ok(Region::new(kind, graph)),
        _ => {
            Err(at(path.into(), format!("`attrs` and `block` belong to tiled regions, this one is `{}`", kind.name())))
        }
    }
}

/// Checks that the type of an output is the one that stands there, if one does.
fn declared(is: &Type, output: &OutputForm, path: &str) -> Result<(), JsonError> {
    if let Some(dtype) = &output.dtype
        && dtype != is.elements()
    {
        return Err(at(format!("{path}.dtype"), format!("`{}` is declared {dtype}, but is {is}", output.name)));
    }
    if let Some(sizes) = &output.shape {
        let path = format!("{path}.shape");
        let given = shape(sizes, &path)?;
        if given != is.shape {
            let given = Type { shape: given, ..is.clone() };
            return Err(at(path, format!("`{}` is declared {given}, but is {is}", output.name)));
        }
    }
    Ok(())
}

impl GraphScope {
    fn find(&self, name: &str, path: impl Fn() -> String) -> Result<yirage_ir::ValueId, JsonError> {
        let missing = || at(path(), format!("nothing before it is called `{name}`"));
        self.names.get(name).copied().ok_or_else(missing)
    }

    fn input(&mut self, form: InputForm, path: &str) -> Result<(), JsonError> {
        let source = match form.kind.as_str() {
            "input" => ValueSource::StepInput,
            "weight" => ValueSource::Weight,
            "kv_cache" => ValueSource::KvCache,
            other => return Err(at(format!("{path}.kind"), format!("`{other}` is none of input, weight, kv_cache"))),
        };
        let layout = ActivationFormat::parse(&form.dtype);
        let dtype = layout.map(|layout| layout.info().dtype).or_else(|| DType::parse(&form.dtype));
        let dtype = dtype.ok_or_else(|| at(format!("{path}.dtype"), format!("there is no dtype `{}`", form.dtype)))?;
        let shape = shape(&form.shape, &format!("{path}.shape"))?;
        let ty = Type { dtype, shape, strides: form.strides, activation_format: layout };
        let id = self.builder.declare(&form.name, ty, source).map_err(|e| at(path.into(), e.to_string()))?;
        self.names.insert(form.name, id);
        Ok(())
    }
}

fn shape(sizes: &[Size], path: &str) -> Result<Vec<Dim>, JsonError> {
    if sizes.len() > MAX_RANK {
        return Err(at(path.into(), format!("{} dimensions, {MAX_RANK} are the most", sizes.len())));
    }
    let dim = |(i, size): (usize, &Size)| match size {
        Size::Fixed(n) => Ok(Dim::Const(*n)),
        Size::Symbol(name) => {
            let known = Sym::ALL.into_iter().find(|s| s.name() == name).map(Dim::Sym);
            known.ok_or_else(|| at(format!("{path}[{i}]"), format!("`{name}` is no symbol of a size")))
        }
    };
    sizes.iter().enumerate().map(dim).collect()
}
