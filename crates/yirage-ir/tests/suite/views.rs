//! Views: strides say what evaluation says, whatever they are strides of; and shapes that nobody sane writes are errors.

use yirage_ir::op::{Cut, Fill, Iota, View, ViewForm};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dim, Dims, Op, Strided, Tensor, Type, text};

fn fixed(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|&n| Dim::Const(n as u32)).collect()
}

/// A view of a value of this shape.
fn random(rng: &mut Rng, shape: &[usize]) -> View {
    let form = match rng.below(4) {
        0 => {
            let mut axes: Vec<u32> = (0..shape.len() as u32).collect();
            rng.shuffle(&mut axes);
            ViewForm::Permute(axes)
        }
        1 => ViewForm::Slice(shape.iter().map(|&n| cut(rng, n)).collect()),
        2 => {
            let mut to: Vec<usize> = shape.iter().map(|&n| if n == 1 { rng.index(4) } else { n }).collect();
            if to.len() < 6 && rng.one_in(2) {
                to.insert(0, 1 + rng.index(2));
            }
            ViewForm::Expand(fixed(&to))
        }
        _ => ViewForm::Reshape(fixed(&reshaped(rng, shape))),
    };
    View { form }
}

fn cut(rng: &mut Rng, n: usize) -> Cut {
    if n == 0 || rng.one_in(8) {
        return Cut { start: rng.below(3) as u32, step: 1, size: Dim::Const(0) };
    }
    let (a, b) = (rng.index(n), rng.index(n));
    let step = *rng.choose(&[1, 1, 2, 3]) * if a <= b { 1 } else { -1 };
    Cut { start: a as u32, step, size: Dim::Const((a.abs_diff(b) / step.unsigned_abs() as usize + 1) as u32) }
}

/// Two neighbours joined, or one cut in two.
fn reshaped(rng: &mut Rng, shape: &[usize]) -> Vec<usize> {
    let mut to = shape.to_vec();
    for _ in 0..1 + rng.below(3) {
        if to.len() > 1 && rng.one_in(2) {
            let at = rng.index(to.len() - 1);
            let joined = to[at] * to.remove(at + 1);
            to[at] = joined;
        } else if to.len() < 7 && !to.is_empty() {
            let at = rng.index(to.len());
            let inner = [3, 2].into_iter().find(|&d| to[at].is_multiple_of(d)).unwrap_or(1);
            to[at] /= inner;
            to.insert(at + 1, inner);
        }
    }
    to
}

/// The elements of memory that strides reach, row-major.
fn walked(memory: &[i32], view: &Strided) -> Vec<i32> {
    let sizes: Vec<usize> = view.shape.iter().map(|d| d.as_const().unwrap()).collect();
    let n: usize = sizes.iter().product();
    let range = view.reach(&Dims::default());
    let at = |mut i: usize| {
        let mut at = view.offset;
        for (n, stride) in sizes.iter().zip(&view.strides).rev() {
            at += (i % n) as i64 * stride;
            i /= n;
        }
        let (low, high) = range.unwrap();
        assert!((low..=high).contains(&at), "{at} outside of {low}..={high}");
        memory[usize::try_from(at).unwrap()]
    };
    (0..n).map(at).collect()
}

#[test]
fn strides_compose_as_evaluation_does() {
    let mut rng = Rng::new(1);
    let (mut strided, mut copied) = (0, 0);
    for _ in 0..4000 {
        let shape: Vec<usize> = (0..rng.below(5)).map(|_| *rng.choose(&[1, 2, 3, 4, 6])).collect();
        let n = shape.iter().product::<usize>();
        let mut value = Tensor::i32(shape.clone(), (0..n as i32).collect());
        let mut memory = value.ints().to_vec();
        let mut lies = Strided::dense(&fixed(&shape)).unwrap();
        for _ in 0..1 + rng.below(5) {
            let view = random(&mut rng, &value.shape);
            let ty = Type::new(DType::I32, fixed(&value.shape));
            let out = Op::from(view.clone()).infer(std::slice::from_ref(&ty)).unwrap_or_else(|e| panic!("{e}"));
            value = Op::from(view.clone()).eval(&[&value]).remove(0);
            assert_eq!(out[0].shape, fixed(&value.shape));
            match view.of(&lies) {
                Some(next) => (lies, strided) = (next, strided + 1),
                None => {
                    assert!(matches!(view.form, ViewForm::Reshape(_)), "{} has strides", view.form);
                    memory = value.ints().to_vec();
                    (lies, copied) = (Strided::dense(&out[0].shape).unwrap(), copied + 1);
                }
            }
            assert_eq!(lies.shape, out[0].shape);
            assert_eq!(walked(&memory, &lies), value.ints(), "{}", view.form);
            assert_eq!(view.form.to_string().parse::<ViewForm>().unwrap(), view.form);
        }
    }
    assert!(strided > 3000 && copied > 50, "{strided} strided, {copied} copied");
}

#[test]
fn huge_values_are_types_and_no_memory() {
    let large = u32::MAX >> 1;
    let fill = Op::from(Fill { value: 1.0.into(), shape: yirage_ir::attr::List(vec![large]) });
    assert_eq!(fill.infer(&[]).unwrap()[0].shape, [Dim::Const(large)]);
    let iota = Op::from(Iota { shape: yirage_ir::attr::List(vec![large]), axis: 0 });
    assert_eq!(iota.infer(&[]).unwrap()[0].dtype, DType::I32);
    let expand = Op::from(View { form: ViewForm::Expand(vec![Dim::Const(1 << 16), Dim::Const(1 << 16)]) });
    expand.infer(&[Type::new(DType::F32, [1u32, 1])]).unwrap();
}

/// Inputs and a node that is none.
const HOSTILE: &[(&str, &str)] = &[
    ("", r#"fill{value=1.0, shape="[4294967295, 4294967295, 4294967295]"}()"#),
    ("", r#"fill{value=1.0, shape="[1, 1, 1, 1, 1, 1, 1, 1, 1]"}()"#),
    ("", r#"fill{value=one, shape="[1]"}()"#),
    ("", r#"fill{value=1.0, shape="[-1]"}()"#),
    ("", r#"iota{shape="[4294967295]", axis=0}()"#),
    ("", r#"iota{shape="[4]", axis=1}()"#),
    ("", r#"iota{shape="[]", axis=0}()"#),
    ("input %x: f32[1, 1]", r#"view{form="expand(4294967295, 4294967295)"}(%x)"#),
    ("input %x: f32[1]", r#"view{form="expand(Tokens)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="expand(Tokens, 4)"}(%x)"#),
    ("input %x: f32[]", r#"view{form="expand(Tokens)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="expand(1, 1, 1, 1, 1, 1, 1, 1, 4)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="expand(3)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="permute(0, 0)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="permute(0, 2)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="permute(1)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="permute(1, 4294967296)"}(%x)"#),
    ("input %x: f32[Tokens, 3]", r#"view{form="permute(1, 0)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="reshape(4)"}(%x)"#),
    ("input %x: f32[2, 3]", r#"view{form="reshape(Tokens, 3)"}(%x)"#),
    ("input %x: f32[Tokens, 3]", r#"view{form="reshape(Seqs, 3)"}(%x)"#),
    ("input %x: f32[Tokens, 3]", r#"view{form="reshape(3, Tokens)"}(%x)"#),
    ("input %x: f32[65536, 65536]", r#"view{form="reshape(4294967296)"}(%x)"#),
    ("input %x: f32[0, 4294967295]", r#"view{form="reshape(4294967295, 4294967295, 0)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(4:1:1)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(0:1:5)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(0:-1:2)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(3:-2147483648:2)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(0:2147483647:4294967295)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(0:1:Tokens)"}(%x)"#),
    ("input %x: f32[Tokens]", r#"view{form="slice(1:1:Tokens)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice(0:1)"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="slice"}(%x)"#),
    ("input %x: f32[4]", r#"view{form="turn(1)"}(%x)"#),
    ("weight %x: q4_0[2, 32]", r#"view{form="permute(1, 0)"}(%x)"#),
    ("weight %x: q4_0[2, 32]", r#"concat{axis=0}(%x, %x)"#),
    ("input %x: f32[2, 3]", r#"concat{axis=2}(%x)"#),
    ("input %x: f32[2, 3] input %y: f32[2, 4]", r#"concat{axis=0}(%x, %y)"#),
    ("input %x: f32[Tokens, 3]", r#"concat{axis=0}(%x, %x)"#),
    ("input %x: f32[4294967295]", r#"concat{axis=0}(%x, %x)"#),
    ("input %x: f32[2, 3]", r#"reduce{kind=sum, axes="[]", keep=true}(%x)"#),
    ("input %x: f32[2, 3]", r#"reduce{kind=sum, axes="[1, 0]", keep=true}(%x)"#),
    ("input %x: f32[2, 3]", r#"reduce{kind=sum, axes="[1, 1]", keep=true}(%x)"#),
    ("input %x: f32[2, 3]", r#"reduce{kind=sum, axes="[2]", keep=true}(%x)"#),
    ("input %x: i32[2, 3]", r#"reduce{kind=mean, axes="[1]", keep=true}(%x)"#),
    ("input %x: f32[2, 3] input %i: i32[1, 1, 1, 1, 1, 1, 1, 1]", r#"gather{axis=0}(%x, %i)"#),
    ("input %x: f32[65536, 65536] input %i: i32[65536, 65536]", r#"gather{axis=0}(%x, %i)"#),
    ("input %x: f32[2, 3] input %i: i32[Tokens]", r#"gather{axis=1}(%x, %i)"#),
    ("input %x: f32[2, 3] input %i: u32[2]", r#"gather{axis=0}(%x, %i)"#),
    ("input %a: f32[3, Tokens] input %b: f32[4, 2]", r#"contract(%a, %b)"#),
    ("input %a: f32[3] input %b: f32[3]", r#"contract(%a, %b)"#),
    ("input %a: f32[Tokens, 4] input %b: f32[3, 4, 2]", r#"contract(%a, %b)"#),
    ("input %a: f32[65536, 65536, 1, 1] input %b: f32[1, 1, 1, 65536]", r#"contract(%a, %b)"#),
    ("input %a: f32[Tokens, 4] input %b: f32[2, 1, 4]", r#"map{expr="add(x0, x1)"}(%a, %b)"#),
    ("input %a: f32[4294967295, 1] input %b: f32[4294967295]", r#"map{expr="add(x0, x1)"}(%a, %b)"#),
    ("input %a: f32[4] input %b: f32[3]", r#"map{expr="add(x0, x1)"}(%a, %b)"#),
    ("input %a: f32[4]", r#"map{expr="add(x0, x1)"}(%a)"#),
    ("input %a: f32[4]", r#"map{expr="1.0"}(%a)"#),
    ("", r#"map{expr="1.0"}()"#),
];

#[test]
fn nodes_that_are_none_are_errors() {
    for (inputs, node) in HOSTILE {
        let error = text::parse(&format!("graph g {{\n{inputs}\n%y = {node}: f32[1]\noutput %y\n}}\n")).unwrap_err();
        assert!(!error.what.contains("is declared"), "{node}: {error}");
    }
}
