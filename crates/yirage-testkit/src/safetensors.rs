//! Writes safetensors files of f32 tensors.

use serde_json::{Map, json};

/// A tensor: name, shape and values.
pub type NamedTensor<'a> = (&'a str, &'a [usize], Vec<f32>);

/// The bytes of a file with these tensors, in their order.
#[must_use]
pub fn file(tensors: &[NamedTensor<'_>]) -> Vec<u8> {
    let (mut header, mut at) = (Map::new(), 0);
    header.insert("__metadata__".into(), json!({"format": "pt"}));
    for (name, shape, values) in tensors {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
        let end = at + 4 * values.len();
        header.insert((*name).into(), json!({"dtype": "F32", "shape": shape, "data_offsets": [at, end]}));
        at = end;
    }
    let mut text = serde_json::to_string(&header).unwrap();
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out.extend(tensors.iter().flat_map(|(_, _, values)| values).flat_map(|x| x.to_le_bytes()));
    out
}
