//! Renders chat templates for `tools/oracle/templates.py`: a request on each line of the input, an answer on each line of
//! the output.
//!
//! A request is `{"template", "messages", "tools"?, "add_generation_prompt"?, "kwargs"?, "adapt"?}`; with `adapt` the
//! messages get the shape that the template reads. The answer is `{"text"}` or `{"error"}`, beside the `messages` and
//! `tools` as they were given to the template.

use std::io::{self, BufRead, Write};

use serde_json::{Value as Json, json};
use yirage_model::chat::{ChatInputs, ChatTemplate};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?))?;
    }
    out.flush()
}

fn answer(line: &str) -> Json {
    rendered(line).unwrap_or_else(|error| json!({"error": error}))
}

fn rendered(line: &str) -> Result<Json, String> {
    let request: Json = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let list = |name: &str| request[name].as_array().cloned();
    let source = request["template"].as_str().ok_or("`template` is missing")?;
    let template = ChatTemplate::new("given", source).map_err(|error| error.to_string())?;
    let (mut messages, mut tools) = (list("messages").unwrap_or_default(), list("tools"));
    if request["adapt"] == true {
        messages = template.capabilities().adapt(&messages);
        tools = tools.map(|tools| template.capabilities().adapt_tools(tools));
    }
    let inputs = ChatInputs {
        tools: tools.as_deref(),
        add_generation_prompt: request["add_generation_prompt"] != false,
        bos_token: "<s>",
        eos_token: "</s>",
        kwargs: request["kwargs"].as_object().cloned().unwrap_or_default(),
        ..ChatInputs::new(&messages)
    };
    let mut answer = match template.render(&inputs) {
        Ok(rendered) => json!({"text": rendered.text}),
        Err(error) => json!({"error": error.to_string()}),
    };
    answer["messages"] = messages.into();
    answer["tools"] = tools.into();
    Ok(answer)
}
