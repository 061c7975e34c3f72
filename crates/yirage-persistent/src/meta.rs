//! The metadata tensors: requests, and what became of them, written in place.

use crate::error::PersistentError;
use crate::limits::{MAX_REQUESTS, MAX_TOKENS};

/// The elements of a metadata tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetaData {
    /// 4 bytes each.
    Int32(Vec<i32>),
    /// 8 bytes each.
    Int64(Vec<i64>),
}

impl MetaData {
    fn name(&self) -> &'static str {
        match self {
            MetaData::Int32(_) => "int32",
            MetaData::Int64(_) => "int64",
        }
    }

    fn len(&self) -> usize {
        match self {
            MetaData::Int32(v) => v.len(),
            MetaData::Int64(v) => v.len(),
        }
    }
}

/// A metadata tensor as its owner gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaTensor {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements, dense and row-major.
    pub data: MetaData,
}

/// The metadata of a kernel, checked.
///
/// Row r is request r. `step[r]` is the position of the last token that is known: the next to be processed. `tokens[r]`
/// has the prompt and then what was generated. A running kernel writes both in place; the text of a request is
/// `tokens[r][..= step[r]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaTensors {
    step: Vec<i32>,
    tokens: Vec<i64>,
    prompt_lengths: Option<Vec<i32>>,
    num_new_tokens: Option<Vec<i32>>,
    width: usize,
}

/// What each tensor is, by the order of the list form.
const NAMES: [&str; 4] = ["step", "tokens", "prompt_lengths", "num_new_tokens"];

/// Buffers of Mirage's kernel that the engine keeps for itself; they are taken and not read.
const KEPT_HERE: [&str; 7] = [
    "input_tokens",
    "output_tokens",
    "qo_indptr_buffer",
    "paged_kv_indptr_buffer",
    "paged_kv_indices_buffer",
    "paged_kv_last_page_len_buffer",
    "paged_kv_indices_snapshot",
];

impl MetaTensors {
    /// From the list form: `[step, tokens]`, `[step, tokens, prompt_lengths]` or `[step, tokens, prompt_lengths,
    /// num_new_tokens]`. `step` is int32 `[requests]`, `tokens` int64 `[requests, max_seq_length]`, the others int32
    /// `[requests]`.
    ///
    /// # Errors
    /// [`PersistentError::Meta`] with the name of the first tensor that is missing or of another type or shape.
    pub fn from_list(tensors: Vec<MetaTensor>) -> Result<MetaTensors, PersistentError> {
        if tensors.len() > NAMES.len() {
            let why =
                format!("{} tensors are given, {} have a meaning: {}", tensors.len(), NAMES.len(), NAMES.join(", "));
            return wrong("meta_tensors", why);
        }
        let names = NAMES.iter().map(|name| (*name).to_owned());
        MetaTensors::from_named(names.zip(tensors).collect())
    }

    /// From the form of names, in which Mirage's further buffers may stand too: they are the engine's own business and are
    /// not read.
    ///
    /// # Errors
    /// As [`MetaTensors::from_list`], and a name without a meaning or twice.
    pub fn from_named(tensors: Vec<(String, MetaTensor)>) -> Result<MetaTensors, PersistentError> {
        let mut found: [Option<MetaTensor>; 4] = Default::default();
        for (name, tensor) in tensors {
            if KEPT_HERE.contains(&name.as_str()) {
                continue;
            }
            let Some(at) = NAMES.iter().position(|known| *known == name) else {
                return wrong(
                    &name,
                    format!("it has no meaning; known are {} and {}", NAMES.join(", "), KEPT_HERE.join(", ")),
                );
            };
            if found[at].replace(tensor).is_some() {
                return wrong(&name, "it is given twice".into());
            }
        }
        let [step, tokens, prompts, new] = found;
        let step = ints("step", step)?;
        let requests = step.len();
        if !(1..=MAX_REQUESTS).contains(&requests) {
            return wrong("step", format!("{requests} requests: 1 to {MAX_REQUESTS} are wanted"));
        }
        let (tokens, width) = matrix(tokens, requests)?;
        let prompt_lengths = prompts.map(|t| of_requests("prompt_lengths", t, requests)).transpose()?;
        let num_new_tokens = new.map(|t| of_requests("num_new_tokens", t, requests)).transpose()?;
        let meta = MetaTensors { step, tokens, prompt_lengths, num_new_tokens, width };
        (0..requests).try_for_each(|row| meta.known(row).map(|_| ()))?;
        Ok(meta)
    }

    /// Requests.
    pub fn requests(&self) -> usize {
        self.step.len()
    }

    /// Positions of a request.
    pub fn max_seq_length(&self) -> usize {
        self.width
    }

    /// The position of each request's last known token.
    pub fn step(&self) -> &[i32] {
        &self.step
    }

    /// The tokens of all requests, row by row.
    pub fn tokens(&self) -> &[i64] {
        &self.tokens
    }

    /// The tokens that new ones of a request are behind.
    pub fn num_new_tokens(&self) -> Option<&[i32]> {
        self.num_new_tokens.as_deref()
    }

    /// The known tokens of a request: prompt and what was generated.
    ///
    /// # Errors
    /// [`PersistentError::Meta`] for a position outside of the row, [`PersistentError::Request`] for no such row.
    pub fn known(&self, row: usize) -> Result<&[i64], PersistentError> {
        let out = |name: &str, value: i32| {
            let why = format!("request {row} has {value}, the row has {} positions", self.width);
            wrong(name, why)
        };
        let Some(&step) = self.step.get(row) else {
            let why = format!("there are {} rows", self.requests());
            return Err(PersistentError::Request { row, why });
        };
        let Some(last) = usize::try_from(step).ok().filter(|&at| at < self.width) else { return out("step", step) };
        let mut known = last + 1;
        if let Some(prompts) = &self.prompt_lengths {
            let length = prompts[row];
            match usize::try_from(length).ok().filter(|n| (1..=self.width).contains(n)) {
                Some(n) => known = known.max(n),
                None => return out("prompt_lengths", length),
            }
        }
        Ok(&self.tokens[row * self.width..][..known])
    }

    /// Gives a request a prompt of its own, in place of what its row has.
    ///
    /// # Errors
    /// [`PersistentError::Request`] for no such row, and a prompt that does not fit.
    pub fn set_prompt(&mut self, row: usize, prompt: &[i64]) -> Result<(), PersistentError> {
        if row >= self.requests() || prompt.is_empty() || prompt.len() > self.width {
            let (rows, width, length) = (self.requests(), self.width, prompt.len());
            let why =
                format!("a prompt of {length} tokens for one of {rows} rows of {width} positions: 1 to {width} fit");
            return Err(PersistentError::Request { row, why });
        }
        self.tokens[row * self.width..][..prompt.len()].copy_from_slice(prompt);
        self.step[row] = prompt.len() as i32 - 1;
        if let Some(prompts) = &mut self.prompt_lengths {
            prompts[row] = prompt.len() as i32;
        }
        Ok(())
    }

    /// A new token of a request, at its position.
    pub(crate) fn write(&mut self, row: usize, position: usize, token: u32) -> Result<(), PersistentError> {
        let at = row.checked_mul(self.width).and_then(|at| at.checked_add(position));
        match at.filter(|_| position < self.width).and_then(|at| self.tokens.get_mut(at)) {
            Some(place) => *place = i64::from(token),
            None => return wrong("tokens", format!("position {position} of request {row} is outside of its row")),
        }
        // A row has at most 2^28 positions.
        self.step[row] = position as i32;
        Ok(())
    }
}

fn ints(name: &str, tensor: Option<MetaTensor>) -> Result<Vec<i32>, PersistentError> {
    let Some(tensor) = tensor else { return wrong(name, "it is missing".into()) };
    match tensor.data {
        MetaData::Int32(values) if tensor.shape == [values.len()] => Ok(values),
        data => wrong(name, format!("it is {} of shape {:?}, int32 [requests] is wanted", data.name(), tensor.shape)),
    }
}

fn of_requests(name: &str, tensor: MetaTensor, requests: usize) -> Result<Vec<i32>, PersistentError> {
    let values = ints(name, Some(tensor))?;
    if values.len() == requests {
        return Ok(values);
    }
    wrong(name, format!("it has {} elements, `step` has {requests}: one a request is wanted", values.len()))
}

fn matrix(tensor: Option<MetaTensor>, requests: usize) -> Result<(Vec<i64>, usize), PersistentError> {
    let Some(tensor) = tensor else { return wrong("tokens", "it is missing".into()) };
    let (shape, kind, len) = (tensor.shape, tensor.data.name(), tensor.data.len());
    match (tensor.data, &shape[..]) {
        (MetaData::Int64(values), &[rows, width])
            if rows == requests && width > 0 && rows.checked_mul(width) == Some(len) && len <= MAX_TOKENS =>
        {
            Ok((values, width))
        }
        _ => wrong(
            "tokens",
            format!(
                "it is {kind} of shape {shape:?} with {len} elements, int64 [{requests}, max_seq_length] is wanted"
            ),
        ),
    }
}

fn wrong<T>(name: &str, why: String) -> Result<T, PersistentError> {
    Err(PersistentError::Meta { name: name.to_owned(), why })
}
