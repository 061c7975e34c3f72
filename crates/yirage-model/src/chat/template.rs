//! One compiled template and its rendering.

use std::error::Error as _;
use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, Output, State};
use serde_json::{Map, Value as Json};

use super::error::ChatError;
use super::python::{self, Layout};
use super::{MAX_FUEL, MAX_OUTPUT_BYTES, MAX_RECURSION, MAX_TEMPLATE_BYTES, clock};

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    name: String,
    env: Environment<'static>,
}

/// What a template renders.
#[derive(Clone, Debug)]
pub struct ChatInputs<'a> {
    /// The conversation: objects with `role`, `content` and whatever else clients send.
    pub messages: &'a [Json],
    /// Tools as OpenAI's API describes them.
    pub tools: Option<&'a [Json]>,
    /// Documents for retrieval templates.
    pub documents: Option<&'a [Json]>,
    /// End with the beginning of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Text of the BOS token, empty where there is none.
    pub bos_token: &'a str,
    /// Text of the EOS token, empty where there is none.
    pub eos_token: &'a str,
    /// `enable_thinking`, left undefined where `None`.
    pub enable_thinking: Option<bool>,
    /// `reasoning_effort`, left undefined where `None`.
    pub reasoning_effort: Option<&'a str>,
    /// The user's own variables; they beat the ones above.
    pub kwargs: Map<String, Json>,
    /// What `strftime_now` calls now: seconds since 1970-01-01 UTC.
    pub now: i64,
}

impl<'a> ChatInputs<'a> {
    /// A conversation that the model shall continue, everything else left out; `now` is 1970.
    pub fn new(messages: &'a [Json]) -> Self {
        Self {
            messages,
            tools: None,
            documents: None,
            add_generation_prompt: true,
            bos_token: "",
            eos_token: "",
            enable_thinking: None,
            reasoning_effort: None,
            kwargs: Map::new(),
            now: 0,
        }
    }
}

/// A rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedChat {
    /// The prompt; special tokens are written as text, so encode it with `parse_special`.
    pub text: String,
    /// The template wrote BOS itself: encode without `add_special`.
    pub starts_with_bos: bool,
}

/// Marks an error as the template's own refusal.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

impl ChatTemplate {
    /// Compiles `source`; `name` goes into messages.
    ///
    /// # Errors
    /// [`ChatError::Syntax`], [`ChatError::Limit`].
    pub fn new(name: &str, source: &str) -> Result<Self, ChatError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            let what = "length of the source in bytes";
            return Err(ChatError::Limit { name: name.to_owned(), what, limit: MAX_TEMPLATE_BYTES });
        }
        let mut env = environment();
        let source = without_generation_tags(source);
        env.add_template_owned("chat", source).map_err(|error| ChatError::Syntax {
            name: name.to_owned(),
            line: error.line().unwrap_or(0),
            detail: describe(&error),
        })?;
        Ok(Self { name: name.to_owned(), env })
    }

    /// Name given at compilation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`ChatError::Refused`] where the template calls `raise_exception`, [`ChatError::Render`], [`ChatError::Limit`].
    pub fn render(&self, inputs: &ChatInputs<'_>) -> Result<RenderedChat, ChatError> {
        let mut env = self.env.clone();
        let now = inputs.now;
        env.add_function("strftime_now", move |format: String| clock::strftime(now, &format));
        let template = env.get_template("chat").map_err(|error| self.fault(&error))?;
        let mut out = Bounded { bytes: Vec::new(), full: false };
        let result = template.render_captured_to(context(inputs), &mut out).map(drop);
        if out.full {
            let what = "length of the rendered text in bytes";
            return Err(ChatError::Limit { name: self.name.clone(), what, limit: MAX_OUTPUT_BYTES });
        }
        result.map_err(|error| self.fault(&error))?;
        let text = String::from_utf8_lossy(&out.bytes).into_owned();
        let starts_with_bos = !inputs.bos_token.is_empty() && text.starts_with(inputs.bos_token);
        Ok(RenderedChat { text, starts_with_bos })
    }

    fn fault(&self, error: &Error) -> ChatError {
        let name = self.name.clone();
        let line = error.line().unwrap_or(0);
        if error.kind() == ErrorKind::OutOfFuel {
            return ChatError::Limit { name, what: "number of steps", limit: MAX_FUEL as usize };
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(current) = cause {
            if let Some(Raised(message)) = current.downcast_ref::<Raised>() {
                return ChatError::Refused { name, line, message: message.clone() };
            }
            cause = current.source();
        }
        ChatError::Render { name, line, detail: describe(error) }
    }
}

fn describe(error: &Error) -> String {
    let own = error.detail().map_or_else(|| error.kind().to_string(), |d| format!("{}: {d}", error.kind()));
    match error.source() {
        Some(cause) => format!("{own} ({cause})"),
        None => own,
    }
}

/// An output that stops growing.
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT_BYTES {
            self.full = true;
            return Err(io::Error::other("the rendered text is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `{% generation %}` marks the assistant's words for training. For rendering it is a block that always runs; white
/// space control stays as written.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        out.push_str(&rest[..at]);
        let tag = &rest[at..];
        let Some(end) = tag[2..].find("%}").map(|end| end + 2) else {
            rest = tag;
            break;
        };
        let inner = &tag[2..end];
        let word = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replacement = match word {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        match replacement {
            Some(new) => {
                out.push_str("{%");
                out.push_str(&inner.replacen(word, new, 1));
                out.push_str("%}");
                rest = &tag[end + 2..];
            }
            None => {
                out.push_str("{%");
                rest = &tag[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn environment() -> Environment<'static> {
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    let mut env = Environment::new();
    env.set_syntax(syntax.expect("the default delimiters are valid"));
    env.set_fuel(Some(MAX_FUEL));
    env.set_recursion_limit(MAX_RECURSION);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_formatter(|out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value| {
        let mut text = String::new();
        python::str(value, &mut text)?;
        out.write_str(&text).map_err(Error::from)
    });
    env.add_filter("tojson", tojson);
    env.add_filter("string", |value: Value| {
        let mut text = String::new();
        python::str(&value, &mut text).map(|()| text)
    });
    env.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        let error = Error::new(ErrorKind::InvalidOperation, message.clone());
        Err(error.with_source(Raised(message)))
    });
    env
}

/// `tojson` as chat templates know it: `json.dumps` without HTML escapes.
fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<Value>>("indent")?,
    };
    let indent = match indent.filter(|v| !v.is_none() && !v.is_undefined()) {
        None => None,
        Some(text) if text.as_str().is_some() => text.as_str().map(str::to_owned),
        Some(count) => Some(" ".repeat(usize::try_from(count)?.min(32))),
    };
    let separators = match options.get::<Option<Vec<String>>>("separators")? {
        Some(pair) if pair.len() == 2 => (pair[0].clone(), pair[1].clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "separators are not a pair")),
        None => ((if indent.is_some() { "," } else { ", " }).to_owned(), ": ".to_owned()),
    };
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let ensure_ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut out = String::new();
    Layout { indent, separators, sort_keys, ensure_ascii }.dump(value, 0, &mut out)?;
    Ok(out)
}

fn context(inputs: &ChatInputs<'_>) -> Value {
    let list = |items: Option<&[Json]>| items.map_or(Value::from(()), |items| items.iter().map(from_json).collect());
    let mut all: Vec<(String, Value)> = vec![
        ("messages".to_owned(), list(Some(inputs.messages))),
        ("tools".to_owned(), list(inputs.tools)),
        ("documents".to_owned(), list(inputs.documents)),
        ("add_generation_prompt".to_owned(), inputs.add_generation_prompt.into()),
        ("bos_token".to_owned(), inputs.bos_token.into()),
        ("eos_token".to_owned(), inputs.eos_token.into()),
    ];
    all.extend(inputs.enable_thinking.map(|v| ("enable_thinking".to_owned(), v.into())));
    all.extend(inputs.reasoning_effort.map(|v| ("reasoning_effort".to_owned(), v.into())));
    all.extend(inputs.kwargs.iter().map(|(name, value)| (name.clone(), from_json(value))));
    Value::from_pairs(all)
}

/// Key order stays as it was: templates print tools in the order their author wrote them.
fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(v) => Value::from(*v),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(v), _) => Value::from(v),
            (None, Some(v)) => Value::from(v),
            (None, None) => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(from_json).collect(),
        Json::Object(entries) => Value::from_pairs(entries.iter().map(|(key, value)| (key.clone(), from_json(value)))),
    }
}
