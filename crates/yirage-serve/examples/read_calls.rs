//! The calls that templates of other renderers write, as the server's parsers read them: each line of the input is a request,
//! each line of the output an answer. `tools/oracle/calls.py` runs this.
//!
//! A request is `{"template", "tools", "texts"}`; the answer `{"form", "read": [{"content", "reasoning_content", "calls"}]}`
//! with what is read of each text at once and in pieces of 1 and 7 bytes, which have to agree, or `{"error"}`.
#![allow(clippy::print_stdout)] // what it is for

use serde_json::{Value, json};
use std::error::Error;
use std::io::BufRead;
use yirage_serve::TemplateCalls;

fn main() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        println!("{}", answer(&request).unwrap_or_else(|error| json!({"error": error})));
    }
    Ok(())
}

pub(crate) fn answer(request: &Value) -> Result<Value, String> {
    let calls = TemplateCalls::of(request["template"].as_str().ok_or("`template` is missing")?)?;
    let tools = request["tools"].as_array().ok_or("`tools` is missing")?;
    let mut read = Vec::new();
    for text in request["texts"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let whole = calls.read(tools, text, usize::MAX)?;
        for bytes in [1, 7] {
            let pieces = calls.read(tools, text, bytes)?;
            if pieces != whole {
                return Err(format!("pieces of {bytes} bytes of {text:?} give {pieces}, the whole {whole}"));
            }
        }
        read.push(whole);
    }
    Ok(json!({"form": calls.form(), "read": read}))
}
