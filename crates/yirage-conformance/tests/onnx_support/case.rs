//! The fixture: one test case of ONNX after another.

use std::collections::HashMap;

/// A case. One of which nothing but the name is there has no outputs.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) op: String,
    attrs: HashMap<String, String>,
    ins: HashMap<String, Array>,
    pub(crate) outs: Vec<Array>,
}

/// A tensor of a case.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
}

#[derive(Clone, Debug)]
pub(crate) enum Values {
    F32(Vec<f32>),
    Int(Vec<i64>),
}

impl Case {
    /// The attribute as text, or what ONNX says it is when not given.
    pub(crate) fn attr<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.attrs.get(name).map_or(default, |v| v.parse().unwrap_or_else(|_| panic!("{}: {name}={v}", self.name)))
    }

    pub(crate) fn has_attr(&self, name: &str) -> bool {
        self.attrs.contains_key(name)
    }

    pub(crate) fn input(&self, name: &str) -> &Array {
        self.opt_input(name).unwrap_or_else(|| panic!("{} has no input {name}", self.name))
    }

    pub(crate) fn opt_input(&self, name: &str) -> Option<&Array> {
        self.ins.get(name)
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
        match &self.values {
            Values::Int(v) => v.iter().map(|&x| i32::try_from(x).unwrap()).collect(),
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
        let values = match &self.values {
            Values::F32(v) => Values::F32((0..count).map(|i| v[from(i)]).collect()),
            Values::Int(v) => Values::Int((0..count).map(|i| v[from(i)]).collect()),
        };
        Array { shape, values }
    }
}

fn exact(x: i64) -> f32 {
    assert!(x.unsigned_abs() <= 1 << 24, "{x} is not exact in f32");
    x as f32
}

/// All cases of the fixture.
pub(crate) fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["case", name, op] => cases.push(Case { name: name.into(), op: op.into(), ..Case::default() }),
            ["attr", name, value] => drop(cases.last_mut().unwrap().attrs.insert(name.into(), value.into())),
            ["in", name, ty, shape, data] => {
                drop(cases.last_mut().unwrap().ins.insert(name.into(), array(ty, shape, data)));
            }
            ["out", ty, shape, data] => cases.last_mut().unwrap().outs.push(array(ty, shape, data)),
            _ => panic!("no line of a case: {line:.60}"),
        }
    }
    cases
}

fn array(ty: &str, shape: &str, data: &str) -> Array {
    let shape: Vec<usize> =
        if shape == "-" { Vec::new() } else { shape.split(',').map(|n| n.parse().unwrap()).collect() };
    let values = match ty {
        "f32" => Values::F32(data.as_bytes().chunks(8).map(float).collect()),
        "int" => Values::Int(data.split(',').map(|n| n.parse().unwrap()).collect()),
        other => panic!("no type {other}"),
    };
    Array { shape, values }
}

fn float(digits: &[u8]) -> f32 {
    f32::from_bits(u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
}
