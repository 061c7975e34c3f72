//! Tiny models with a layer behind their last that predicts further tokens (multi-token prediction).

use crate::{fixtures, recipe, safetensors, tiny};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The tiny models whose families have such layers.
pub const NAMES: [&str; 2] = ["deepseek-v3", "glm4moe"];

/// Where the layer's embedding and head come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtpTables {
    /// The layer has its own.
    Own,
    /// The layer has the model's once more, as published files do.
    Copied,
    /// The file has the model's alone.
    Missing,
}

/// What of its input tells a layer the next token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtpSight {
    /// The token.
    Token,
    /// The hidden state of the position before it.
    State,
}

/// A model as numbers.
#[derive(Clone, Debug)]
pub struct MtpModel {
    /// Its name.
    pub name: &'static str,
    /// Its configuration.
    pub config: Value,
    /// Its tensors: name, shape and values.
    pub tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

/// A tensor of the layer, and the tensor of the model that it stands for.
const TABLES: [(&str, &str); 2] =
    [("embed_tokens.weight", "model.embed_tokens.weight"), ("shared_head.head.weight", "lm_head.weight")];

/// Tokens of the vocabulary of [`MtpModel::foreseen`], and elements of its hidden states.
const FORESEEN: usize = 64;

/// The length of its directions: the square root of their number.
const LENGTH: f32 = 8.0;

impl MtpModel {
    /// The tiny model `name` with random weights in its layer behind the last.
    #[must_use]
    pub fn random(name: &'static str, tables: MtpTables) -> MtpModel {
        let mut of = tiny::golden(name);
        let (layer, hidden) = (layers(&of["config"]), of["config"]["hidden_size"].clone());
        let (last, own) = (format!("model.layers.{}.", layer - 1), format!("model.layers.{layer}."));
        let of_last = of["tensors"].as_array().unwrap().iter();
        let mut more: Vec<Value> = of_last.filter(|t| t[0].as_str().unwrap().starts_with(&last)).cloned().collect();
        for tensor in &mut more {
            tensor[0] = tensor[0].as_str().unwrap().replace(&last, &own).into();
        }
        for norm in ["enorm", "hnorm", "shared_head.norm"] {
            more.push(json!([format!("{own}{norm}.weight"), [hidden], 1.0, 11]));
        }
        more.push(json!([format!("{own}eh_proj.weight"), [hidden, 2 * hidden.as_u64().unwrap()], 0.0, 10]));
        if tables != MtpTables::Missing {
            let vocab = of["config"]["vocab_size"].clone();
            more.extend(TABLES.map(|(table, _)| json!([format!("{own}{table}"), [vocab, hidden], 0.0, 10])));
        }
        of["tensors"].as_array_mut().unwrap().extend(more);
        let mut model = MtpModel { name, config: of["config"].clone(), tensors: recipe::tensors(&of) };
        if tables == MtpTables::Copied {
            for (table, source) in TABLES {
                let values = model.tensor(source).1.to_vec();
                model.set(&format!("{own}{table}"), |_| values.clone());
            }
        }
        model
    }

    /// A model of 64 tokens that its layer behind the last foresees. Behind a token t comes 5t + 7 with the chance
    /// e^4 / (e^4 + 63), and every other token with the same smaller one.
    ///
    /// Hidden states are one direction for each token, as nothing is added to its embedding. By a token the layer does what
    /// the model does. By a state it turns the direction of a token into that of the likeliest next one, and is wrong
    /// behind every token that is another.
    #[must_use]
    pub fn foreseen(name: &'static str, by: MtpSight) -> MtpModel {
        let mut model = MtpModel::random(name, MtpTables::Missing);
        model.config["vocab_size"] = FORESEEN.into();
        // Norms then change no bit of a direction, so that the layer's logits are the model's.
        model.config["rms_norm_eps"] = 0.into();
        let own = format!("model.layers.{}.", layers(&model.config));
        let names: Vec<String> = model.tensors.iter().map(|(name, ..)| name.clone()).collect();
        for name in names {
            if name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight") {
                model.set(&name, |values| vec![0.0; values.len()]);
            } else if name.ends_with("norm.weight") {
                model.set(&name, |values| vec![1.0; values.len()]);
            }
        }
        let next = |token: usize| (5 * token + 7) % FORESEEN;
        let square = |set: &dyn Fn(&mut [f32], usize)| {
            let mut values = vec![0.0; FORESEEN * FORESEEN];
            (0..FORESEEN).for_each(|token| set(&mut values, token));
            values
        };
        for (name, shape, values) in &mut model.tensors {
            match name.as_str() {
                "model.embed_tokens.weight" => *values = square(&|of, token| of[token * FORESEEN + token] = LENGTH),
                "lm_head.weight" => *values = square(&|of, token| of[next(token) * FORESEEN + token] = 0.5),
                _ if *name == format!("{own}eh_proj.weight") => {
                    *values = vec![0.0; 2 * FORESEEN * FORESEEN];
                    for token in 0..FORESEEN {
                        let (row, half) = match by {
                            MtpSight::Token => (token, 0),
                            MtpSight::State => (next(token), 1),
                        };
                        values[(2 * row + half) * FORESEEN + token] = 1.0;
                    }
                    continue;
                }
                _ => continue,
            }
            *shape = vec![FORESEEN, FORESEEN];
        }
        model
    }

    /// The layer behind the last.
    #[must_use]
    pub fn layer(&self) -> u64 {
        layers(&self.config)
    }

    /// Shape and values of a tensor.
    #[must_use]
    pub fn tensor(&self, name: &str) -> (&[usize], &[f32]) {
        let (_, shape, values) = self.tensors.iter().find(|tensor| tensor.0 == name).unwrap();
        (shape, values)
    }

    /// Gives a tensor other values.
    pub fn set(&mut self, name: &str, values: impl Fn(&[f32]) -> Vec<f32>) {
        let tensor = self.tensors.iter_mut().find(|tensor| tensor.0 == name).unwrap();
        tensor.2 = values(&tensor.2);
    }

    /// The model's folder: config.json and model.safetensors in f32.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let tensors: Vec<_> =
            self.tensors.iter().map(|(name, shape, of)| (&name[..], &shape[..], of.clone())).collect();
        let files =
            [("config.json", self.config.to_string().into_bytes()), ("model.safetensors", safetensors::file(&tensors))];
        fixtures::folder(self.name, &files)
    }
}

fn layers(config: &Value) -> u64 {
    config["num_hidden_layers"].as_u64().unwrap()
}
