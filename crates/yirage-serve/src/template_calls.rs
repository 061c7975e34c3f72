//! What a chat template says of its model's calls, and the calls of an answer: for comparing with other renderers, without
//! a model and without a server.

use crate::response_parser::{DeclaredTools, OutputFormat, ResponseParser, ResponsePiece, ToolCall};
use crate::tools::Tool;
use serde_json::{Value, json};
use yirage_model::chat::{ChatInputs, ChatTemplate};

/// How the model of a chat template thinks and calls tools, found as the server finds it.
#[derive(Clone, Copy, Debug)]
pub struct TemplateCalls(OutputFormat);

impl TemplateCalls {
    /// What a template of this source says, whose tokens of beginning and end are `<s>` and `</s>`.
    ///
    /// # Errors
    /// Why it is no template.
    pub fn of(source: &str) -> Result<TemplateCalls, String> {
        let template = ChatTemplate::new("given", source).map_err(|why| why.to_string())?;
        let render = |inputs: ChatInputs<'_>| {
            let inputs = ChatInputs { bos_token: "<s>", eos_token: "</s>", ..inputs };
            template.render(&inputs).ok().map(|rendered| rendered.text)
        };
        Ok(TemplateCalls(OutputFormat::by(source, &render).0))
    }

    /// What its form of calls is called; none where a request with tools is refused.
    pub fn form(self) -> Option<&'static str> {
        self.0.calls.map(|calls| calls.name())
    }

    /// What is said, thought and called in an answer to a request with these tools, which comes in pieces of so many bytes:
    /// `{"content", "reasoning_content", "calls": [{"name", "arguments"}]}`.
    ///
    /// # Errors
    /// Tools that make no sense.
    pub fn read(self, tools: &[Value], answer: &str, bytes: usize) -> Result<Value, String> {
        let tools = Tool::list(tools, &mut Vec::new()).map_err(|error| error.message)?;
        let mut parser = ResponseParser::new(&self.0, false, DeclaredTools::new(&tools));
        let (mut pieces, mut rest) = (Vec::new(), answer);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.ceil_char_boundary(bytes.max(1)));
            pieces.extend(parser.push(piece));
            rest = behind;
        }
        pieces.extend(parser.finish());
        let (mut calls, mut said, mut thought) = (Vec::new(), String::new(), String::new());
        for piece in pieces {
            match piece {
                ResponsePiece::Call(part) => ToolCall::add(&mut calls, part),
                ResponsePiece::Content(text) => said.push_str(&text),
                ResponsePiece::Reasoning(text) => thought.push_str(&text),
            }
        }
        let calls = calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments}));
        Ok(json!({"content": said, "reasoning_content": thought, "calls": calls.collect::<Vec<Value>>()}))
    }
}
