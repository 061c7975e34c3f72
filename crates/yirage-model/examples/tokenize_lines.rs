//! Encodes and decodes what stands on standard input, for the comparison with the reference library in
//! `tools/oracle/tokenizers.py`. Each line is `{"file": PATH, "texts": [TEXT, ...], "ids": [[ID, ...], ...]}`; the
//! answer is one line: `{"error": MESSAGE}` for a file that does not load, else `{"encoded": [...], "decoded": [...]}`,
//! where an encoding is a list of ids without and one with the tokens around a text, or `{"error": MESSAGE}`, and a
//! decoding is a text with and one without special tokens.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};

fn encoded(tokenizer: &Tokenizer, text: &str) -> Value {
    let with = |add_special| tokenizer.encode(text, EncodeOptions { add_special, parse_special: true });
    match (with(false), with(true)) {
        (Ok(plain), Ok(framed)) => json!([plain, framed]),
        (Err(error), _) | (_, Err(error)) => json!({"error": error.to_string()}),
    }
}

fn answer(line: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let request: Value = serde_json::from_str(line)?;
    let file = request["file"].as_str().unwrap_or_default();
    let tokenizer = match Tokenizer::from_json(&std::fs::read(file)?, file) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return Ok(json!({"error": error.to_string()})),
    };
    let texts = request["texts"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let lists: Vec<Vec<u32>> = serde_json::from_value(request["ids"].clone())?;
    let decoded = lists.iter().map(|ids| json!([tokenizer.decode(ids, false), tokenizer.decode(ids, true)]));
    Ok(json!({
        "encoded": texts.map(|text| encoded(&tokenizer, text)).collect::<Vec<_>>(),
        "decoded": decoded.collect::<Vec<_>>(),
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?)?)?;
        out.flush()?;
    }
    Ok(())
}
