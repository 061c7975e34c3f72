//! The fixture: one test case of ONNX after another.

use std::collections::HashMap;
use yirage_ir::Format;

/// A case. One of which nothing but the name is there has no outputs.
#[derive(Debug, Default)]
pub(crate) struct OnnxCase {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) opset: u32,
    attrs: HashMap<String, String>,
    /// In the node's order, with their names; none where an input is left out.
    pub(crate) ins: Vec<(String, Option<Array>)>,
    pub(crate) outs: Vec<Array>,
}

/// A tensor of a case.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
}

/// The types of elements that a case may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    F32,
    F16,
    BF16,
    I32,
    U32,
    I64,
    Bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// Floats of any width.
    F32(Vec<f32>),
    /// Whole numbers of any width; truth values are 0 and 1.
    Int(Vec<i64>),
}

impl OnnxCase {
    /// The attribute as text, or what ONNX says it is when not given.
    pub(crate) fn attr<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.attrs.get(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{}: {name}={v}", self.name)))
    }

    /// A list of whole numbers, if it is given; a single number is a list.
    pub(crate) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        let text = self.attrs.get(name)?;
        Some(text.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect())
    }

    /// Whole numbers that were an attribute once and are an input now.
    pub(crate) fn whole(&self, name: &str, input: usize) -> Option<Vec<i64>> {
        let given = || self.ins.get(input).and_then(|(_, array)| array.as_ref());
        self.ints(name).or_else(|| given().map(|array| array.whole().into()))
    }

    pub(crate) fn has_attr(&self, name: &str) -> bool {
        self.attrs.contains_key(name)
    }

    pub(crate) fn input(&self, name: &str) -> &Array {
        self.opt_input(name).unwrap_or_else(|| panic!("{} has no input {name}", self.name))
    }

    /// Input `at`, whatever its name.
    pub(crate) fn at(&self, at: usize) -> &Array {
        self.ins
            .get(at)
            .and_then(|(_, array)| array.as_ref())
            .unwrap_or_else(|| panic!("{} has no input {at}", self.name))
    }

    pub(crate) fn opt_input(&self, name: &str) -> Option<&Array> {
        self.ins.iter().find(|(n, _)| n == name).and_then(|(_, array)| array.as_ref())
    }

    /// The attribute `axis` counted from the front.
    pub(crate) fn axis(&self, rank: usize) -> usize {
        let axis = self.attr("axis", -1i64);
        usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).unwrap()
    }
}

impl Array {
    /// The values as f32; integers must be exact in it.
    pub(crate) fn floats(&self) -> Vec<f32> {
        match &self.values {
            Values::F32(v) => v.clone(),
            Values::Int(v) => v.iter().map(|&x| exact(x)).collect(),
        }
    }

    pub(crate) fn ints(&self) -> Vec<i32> {
        self.whole().iter().map(|&x| i32::try_from(x).unwrap()).collect()
    }

    pub(crate) fn whole(&self) -> &[i64] {
        match &self.values {
            Values::Int(v) => v,
            Values::F32(_) => panic!("floats where integers are wanted"),
        }
    }

    /// The elements with their axes in another order: axis i of the result is axis `order[i]`.
    pub(crate) fn permuted(&self, order: &[usize]) -> Array {
        let strides: Vec<usize> = (0..self.shape.len()).map(|i| self.shape[i + 1..].iter().product()).collect();
        let shape: Vec<usize> = order.iter().map(|&i| self.shape[i]).collect();
        let from = |mut at: usize| {
            let mut offset = 0;
            for (&n, &axis) in shape.iter().zip(order).rev() {
                offset += at % n * strides[axis];
                at /= n;
            }
            offset
        };
        let count: usize = shape.iter().product();
        let element = self.element;
        let values = match &self.values {
            Values::F32(v) => Values::F32((0..count).map(|i| v[from(i)]).collect()),
            Values::Int(v) => Values::Int((0..count).map(|i| v[from(i)]).collect()),
        };
        Array { element, shape, values }
    }
}

fn exact(x: i64) -> f32 {
    assert!(x.unsigned_abs() <= 1 << 24, "{x} is not exact in f32");
    x as f32
}

/// All cases of the fixture.
pub(crate) fn read(text: &str) -> Vec<OnnxCase> {
    let mut cases: Vec<OnnxCase> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["case", name, op, opset] => {
                let opset = opset.parse().unwrap();
                cases.push(OnnxCase { name: name.into(), op: op.into(), opset, ..OnnxCase::default() });
            }
            ["attr", name, value] => drop(cases.last_mut().unwrap().attrs.insert(name.into(), value.into())),
            ["in", name, "absent"] => cases.last_mut().unwrap().ins.push((name.into(), None)),
            ["in", name, element, shape, data] => {
                cases.last_mut().unwrap().ins.push((name.into(), Some(array(element, shape, data))));
            }
            ["out", element, shape, data] => cases.last_mut().unwrap().outs.push(array(element, shape, data)),
            _ => panic!("no line of a case: {line:.60}"),
        }
    }
    cases
}

fn array(element: &str, shape: &str, data: &str) -> Array {
    let shape: Vec<usize> =
        if shape == "-" { Vec::new() } else { shape.split(',').map(|n| n.parse().unwrap()).collect() };
    let data = if data == "-" { "" } else { data };
    let floats = |format: Format| {
        let info = format.info();
        let word = |d: &[u8]| u32::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
        let words = data.as_bytes().chunks(2 * info.bytes).map(word);
        let bytes: Vec<u8> = words.flat_map(|w| w.to_le_bytes()[..info.bytes].to_vec()).collect();
        let mut values = vec![0.0; bytes.len() / info.bytes];
        (info.decode)(&bytes, &mut values);
        Values::F32(values)
    };
    let whole = || Values::Int(data.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect());
    let (element, values) = match element {
        "f32" => (Element::F32, floats(Format::F32)),
        "f16" => (Element::F16, floats(Format::F16)),
        "bf16" => (Element::BF16, floats(Format::BF16)),
        "i32" => (Element::I32, whole()),
        "u32" => (Element::U32, whole()),
        "i64" => (Element::I64, whole()),
        "bool" => (Element::Bool, whole()),
        other => panic!("no elements {other}"),
    };
    Array { element, shape, values }
}
