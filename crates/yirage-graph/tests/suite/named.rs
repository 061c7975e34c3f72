//! Operations by their names: the graphs that methods make, and what is refused.

use yirage_graph::{GraphError, KernelGraph, OpAttribute};
use yirage_ir::{DType, ValueId};

const ROWS: [u32; 2] = [4, 6];

fn number(name: &str, value: f64) -> (String, OpAttribute) {
    (name.into(), OpAttribute::Number(value))
}

fn integers(name: &str, value: &[i64]) -> (String, OpAttribute) {
    (name.into(), OpAttribute::Integers(value.to_vec()))
}

/// A graph with inputs of 4 x 6 and a vector of 6.
fn inputs() -> (KernelGraph, [ValueId; 3]) {
    let mut graph = KernelGraph::new("g");
    let mut new = |dims: &[u32]| graph.new_input(dims, None, DType::F32).unwrap();
    let ids = [new(&ROWS), new(&ROWS), new(&[6])];
    (graph, ids)
}

fn hash(mut graph: KernelGraph, outputs: &[ValueId]) -> u128 {
    outputs.iter().for_each(|&id| graph.mark_output(id, None).unwrap());
    graph.finish().unwrap().structural_hash()
}

#[test]
fn a_name_makes_what_its_method_makes() {
    type Method = fn(&mut KernelGraph, [ValueId; 3]) -> Result<ValueId, GraphError>;
    type Row = (&'static str, &'static [usize], Vec<(String, OpAttribute)>, Method);
    let rows: [Row; 16] = [
        ("silu", &[0], vec![], |g, i| g.silu(i[0])),
        ("add", &[0, 1], vec![], |g, i| g.add(i[0], i[1])),
        ("sub", &[1, 0], vec![], |g, i| g.sub(i[1], i[0])),
        ("clamp", &[0], vec![number("max_val", 2.0), number("min_val", -1.0)], |g, i| g.clamp(i[0], -1.0, 2.0)),
        ("mul_scalar", &[0], vec![number("scalar", 0.5)], |g, i| g.mul_scalar(i[0], 0.5)),
        ("reduction", &[0], vec![number("dim", 1.0)], |g, i| g.reduction(i[0], 1)),
        ("softmax", &[0], vec![number("dim", 0.0)], |g, i| g.softmax(i[0], 0)),
        ("softmax", &[0], vec![number("dim", -1.0)], |g, i| g.softmax(i[0], 1)),
        ("rms_norm", &[0], vec![], |g, i| g.scaled_rms_norm(i[0], &[6], None, 1e-5)),
        ("rms_norm", &[0, 2], vec![number("eps", 0.5)], |g, i| g.scaled_rms_norm(i[0], &[6], Some(i[2]), 0.5)),
        ("layer_norm", &[0, 2, 2], vec![integers("normalized_shape", &[6])], |g, i| {
            g.layer_norm(i[0], &[6], Some(i[2]), Some(i[2]), 1e-5)
        }),
        ("concat", &[0, 1], vec![number("dim", 0.0)], |g, i| g.concat(&i[..2], 0)),
        ("reshape", &[0], vec![integers("dims", &[3, 8])], |g, i| g.reshape(i[0], &[3, 8])),
        ("reshape", &[0], vec![integers("dims", &[3, -1])], |g, i| g.reshape(i[0], &[3, 8])),
        ("permute", &[0], vec![integers("dims", &[-1, 0])], |g, i| g.permute(i[0], &[1, 0])),
        ("pow", &[0, 1], vec![], |g, i| g.pow(i[0], i[1])),
    ];
    for (name, operands, attributes, method) in rows {
        let (mut named, ids) = inputs();
        let given: Vec<ValueId> = operands.iter().map(|&at| ids[at]).collect();
        let [made] = named.named_op(name, &given, &attributes).unwrap()[..] else { panic!("{name}: one result") };
        let (mut called, ids) = inputs();
        let other = method(&mut called, ids).unwrap();
        assert_eq!(hash(named, &[made]), hash(called, &[other]), "{name}");
    }
}

#[test]
fn every_listed_name_is_an_operation() {
    for name in KernelGraph::operations() {
        let (mut graph, _) = inputs();
        // None takes no operand at all, so that each says what it wants.
        let told = graph.named_op(name, &[], &[]).unwrap_err().to_string();
        assert!(told.starts_with(name) && told.contains("0 operands are given"), "{told}");
    }
}

#[test]
fn refusals_say_what_is_wanted() {
    let flag = |name: &str| (name.to_owned(), OpAttribute::Flag(true));
    for (name, operands, attributes, words) in [
        ("silo", 1, vec![], "`silo` is no operation of graphs, which are exp, silu"),
        ("silu", 2, vec![], "2 operands are given; wanted are A"),
        ("rms_norm", 3, vec![], "3 operands are given; wanted are A or A, weight"),
        ("silu", 1, vec![number("eps", 1.0)], "its attribute `eps`: no such attribute: it has none"),
        ("softmax", 1, vec![number("axis", 1.0)], "its attribute `axis`: no such attribute: dim"),
        ("softmax", 1, vec![], "its attribute `dim`: it is missing"),
        ("softmax", 1, vec![number("dim", -3.0)], "f32[4, 6] has no dimension -3; its rank is 2"),
        ("softmax", 1, vec![number("dim", 0.5)], "a whole number of less than 33 bits wanted"),
        ("softmax", 1, vec![number("dim", f64::NAN)], "a whole number of less than 33 bits wanted"),
        ("softmax", 1, vec![flag("dim")], "a number wanted"),
        ("split", 1, vec![number("dim", 0.0)], "its attribute `sizes`: it is missing"),
        ("split", 1, vec![integers("sizes", &[-1, 7]), number("dim", 1.0)], "sizes from 0 to 2^32 - 1 wanted"),
        ("reshape", 1, vec![number("dims", 24.0)], "a list of whole numbers wanted"),
        ("attention", 3, vec![number("causal", 1.0)], "true or false wanted"),
        ("rms_norm", 1, vec![number("eps", -1.0)], "a number of at least 0"),
    ] {
        let (mut graph, ids) = inputs();
        let given: Vec<ValueId> = ids.into_iter().take(operands).collect();
        let told = graph.named_op(name, &given, &attributes).unwrap_err().to_string();
        assert!(told.contains(words), "`{words}` is not in: {told}");
    }
}
