//! Checkpoints from the recipes of their tensors: `tensors` of a fixture, each with name, shape, base and exponent.

use crate::{safetensors, weights};
use serde_json::Value;

/// The bytes of the safetensors file that a fixture describes.
pub(crate) fn checkpoint(of: &Value) -> Vec<u8> {
    let recipes = recipes(of);
    let tensors: Vec<_> = recipes.iter().map(|r| (r.name, &r.shape[..], r.values(seed(of)))).collect();
    safetensors::file(&tensors)
}

/// The tensors that a fixture describes: name, shape and values.
pub(crate) fn tensors(of: &Value) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let tensor = |r: TensorRecipe<'_>| (r.name.to_owned(), r.shape.clone(), r.values(seed(of)));
    recipes(of).into_iter().map(tensor).collect()
}

/// SHA-256 of all values, to compare with what the script that made the fixture had.
#[cfg(test)]
pub(crate) fn digest(of: &Value) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for recipe in recipes(of) {
        recipe.values(seed(of)).iter().for_each(|x| hash.update(x.to_le_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seed(of: &Value) -> u64 {
    of["seed"].as_u64().unwrap()
}

fn recipes(of: &Value) -> Vec<TensorRecipe<'_>> {
    of["tensors"].as_array().unwrap().iter().map(TensorRecipe::of).collect()
}

/// How a tensor is made.
struct TensorRecipe<'a> {
    name: &'a str,
    shape: Vec<usize>,
    base: f32,
    exponent: u8,
}

impl<'a> TensorRecipe<'a> {
    fn of(entry: &'a Value) -> Self {
        TensorRecipe {
            name: entry[0].as_str().unwrap(),
            shape: entry[1].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect(),
            base: entry[2].as_f64().unwrap() as f32,
            exponent: u8::try_from(entry[3].as_u64().unwrap()).unwrap(),
        }
    }

    fn values(&self, seed: u64) -> Vec<f32> {
        weights::values(seed, self.name, self.shape.iter().product(), self.base, self.exponent)
    }
}
