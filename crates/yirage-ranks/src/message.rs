//! What rank 0 tells the others, as bytes: what their devices are to do, in its order.
//!
//! Numbers are eight bytes, the lowest first; texts and bytes stand behind their lengths.

use yirage_hal::{HostMemory, OpenOptions, Record};
use yirage_ir::Dims;
use yirage_plan::{ExecutorKind, ExpertDivision};

/// What a device is to do. What is made is called by a number that rank 0 gives.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RankCommand {
    /// Open a device.
    Open { backend: String, ordinal: u32, options: OpenOptions },
    /// Begin a weight, of which this is the line of a weight plan; a stage says in how many rows it takes pieces.
    Weight { id: u64, entry: String },
    /// Take rows of a weight.
    Rows { weight: u64, first_row: u64, bytes: Vec<u8> },
    /// Finish a weight.
    Finish { weight: u64 },
    /// Grant a cache.
    KvCache { id: u64, block: String, k_width: u32, blocks: u64 },
    /// Load a plan.
    Load(Box<PlanLoad>),
    /// Keep an output of a program's last step.
    Output { id: u64, program: u64, index: u64 },
    /// Run a step, and give these outputs of it.
    Submit { program: u64, kind: ExecutorKind, dims: Dims, inputs: Vec<RankInput>, reads: Vec<u64> },
    /// Forget something.
    Drop { id: u64 },
    /// Nothing: the ranks hear of each other.
    Ping,
    /// There is nothing more to do.
    End,
    /// From now on hear what rank 0 tells this rank alone, as a stage of a pipeline.
    BecomeStage,
    /// Say what memory the device holds.
    Memory,
    /// Give the contents of a cache's blocks.
    ReadBlocks { cache: u64, blocks: Vec<u32> },
    /// Take the contents of a cache's blocks.
    WriteBlocks { cache: u64, blocks: Vec<u32>, contents: Vec<u8> },
}

/// A plan, and what its names stand for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PlanLoad {
    pub(crate) id: u64,
    pub(crate) arena: u64,
    pub(crate) variant: Option<String>,
    pub(crate) weights: Vec<(String, u64)>,
    pub(crate) kv_caches: Vec<(String, u64)>,
    pub(crate) plan: String,
}

/// What a step input holds in a step.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RankInput {
    /// Bytes of the host.
    Host(Record),
    /// An output that was kept.
    Resident(u64),
}

impl RankCommand {
    /// Appends the command to a message.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        match self {
            RankCommand::Open { backend, ordinal, options } => {
                w.number(0).text(backend).number(u64::from(*ordinal));
                w.number(options.threads.map_or(0, |n| n as u64)).optional(options.isa.as_deref());
                w.number(u64::from(options.guarded)).number(u64::from(options.keep_stalled));
                w.number(u64::from(options.experts == ExpertDivision::Whole));
            }
            RankCommand::Weight { id, entry } => {
                w.number(1).number(*id).text(entry);
            }
            RankCommand::Rows { weight, first_row, bytes } => {
                w.number(2).number(*weight).number(*first_row).bytes(bytes);
            }
            RankCommand::Finish { weight } => {
                w.number(3).number(*weight);
            }
            RankCommand::KvCache { id, block, k_width, blocks } => {
                w.number(4).number(*id).text(block).number(u64::from(*k_width)).number(*blocks);
            }
            RankCommand::Load(load) => {
                w.number(5).number(load.id).number(load.arena).optional(load.variant.as_deref());
                w.named(&load.weights).named(&load.kv_caches).text(&load.plan);
            }
            RankCommand::Output { id, program, index } => {
                w.number(6).number(*id).number(*program).number(*index);
            }
            RankCommand::Submit { program, kind, dims, inputs, reads } => {
                w.number(7).number(*program).text(kind.name());
                [dims.tokens, dims.seqs, dims.blocks, dims.rows].into_iter().for_each(|size| {
                    w.number(u64::from(size));
                });
                w.number(inputs.len() as u64);
                for input in inputs {
                    match input {
                        RankInput::Host(record) => w.number(0).bytes(record.bytes()),
                        RankInput::Resident(id) => w.number(1).number(*id),
                    };
                }
                w.numbers(reads.iter().copied());
            }
            RankCommand::Drop { id } => {
                w.number(8).number(*id);
            }
            RankCommand::Ping => {
                w.number(9);
            }
            RankCommand::End => {
                w.number(10);
            }
            RankCommand::BecomeStage => {
                w.number(11);
            }
            RankCommand::Memory => {
                w.number(12);
            }
            RankCommand::ReadBlocks { cache, blocks } => {
                w.number(13).number(*cache).numbers(blocks.iter().map(|&block| block.into()));
            }
            RankCommand::WriteBlocks { cache, blocks, contents } => {
                w.number(14).number(*cache).numbers(blocks.iter().map(|&block| block.into())).bytes(contents);
            }
        }
    }

    /// The commands of a message.
    ///
    /// # Errors
    /// Where it ends too early, or holds what is no command.
    pub(crate) fn read_all(message: &[u8]) -> Result<Vec<RankCommand>, String> {
        let mut reader = Reader { rest: message, whole: message.len() };
        let mut commands = Vec::new();
        while !reader.rest.is_empty() {
            commands.push(reader.command()?);
        }
        Ok(commands)
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u64>) -> &mut Self {
        self.number(numbers.len() as u64);
        numbers.for_each(|number| {
            self.number(number);
        });
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64).0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn optional(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    fn named(&mut self, ids: &[(String, u64)]) -> &mut Self {
        self.number(ids.len() as u64);
        for (name, id) in ids {
            self.text(name).number(*id);
        }
        self
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let at = self.whole - self.rest.len();
        let short = || format!("{bytes} bytes wanted at {at} of a message of {}", self.whole);
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut number = [0; 8];
        number.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(number))
    }

    fn small(&mut self) -> Result<u32, String> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| format!("expected a number below 2^32, got {number}"))
    }

    fn numbers(&mut self) -> Result<Vec<u64>, String> {
        let count = self.number()?;
        (0..count).map(|_| self.number()).collect()
    }

    fn small_numbers(&mut self) -> Result<Vec<u32>, String> {
        let count = self.number()?;
        (0..count).map(|_| self.small()).collect()
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let bytes = self.number()?;
        self.take(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn text(&mut self) -> Result<String, String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|error| error.to_string())
    }

    fn optional(&mut self) -> Result<Option<String>, String> {
        if self.number()? == 0 { Ok(None) } else { self.text().map(Some) }
    }

    fn named(&mut self) -> Result<Vec<(String, u64)>, String> {
        let count = self.number()?;
        (0..count).map(|_| Ok((self.text()?, self.number()?))).collect()
    }

    fn command(&mut self) -> Result<RankCommand, String> {
        Ok(match self.number()? {
            0 => RankCommand::Open {
                backend: self.text()?,
                ordinal: self.small()?,
                options: OpenOptions {
                    threads: Some(self.number()? as usize).filter(|&n| n > 0),
                    isa: self.optional()?,
                    guarded: self.number()? != 0,
                    keep_stalled: self.number()? != 0,
                    experts: if self.number()? == 0 { ExpertDivision::Rows } else { ExpertDivision::Whole },
                },
            },
            1 => RankCommand::Weight { id: self.number()?, entry: self.text()? },
            2 => RankCommand::Rows { weight: self.number()?, first_row: self.number()?, bytes: self.bytes()?.to_vec() },
            3 => RankCommand::Finish { weight: self.number()? },
            4 => RankCommand::KvCache {
                id: self.number()?,
                block: self.text()?,
                k_width: self.small()?,
                blocks: self.number()?,
            },
            5 => RankCommand::Load(Box::new(PlanLoad {
                id: self.number()?,
                arena: self.number()?,
                variant: self.optional()?,
                weights: self.named()?,
                kv_caches: self.named()?,
                plan: self.text()?,
            })),
            6 => RankCommand::Output { id: self.number()?, program: self.number()?, index: self.number()? },
            7 => self.submit()?,
            8 => RankCommand::Drop { id: self.number()? },
            9 => RankCommand::Ping,
            10 => RankCommand::End,
            11 => RankCommand::BecomeStage,
            12 => RankCommand::Memory,
            13 => RankCommand::ReadBlocks { cache: self.number()?, blocks: self.small_numbers()? },
            14 => RankCommand::WriteBlocks {
                cache: self.number()?,
                blocks: self.small_numbers()?,
                contents: self.bytes()?.to_vec(),
            },
            other => return Err(format!("{other} is no command; start all ranks with one program")),
        })
    }

    fn submit(&mut self) -> Result<RankCommand, String> {
        let (program, kind) = (self.number()?, self.text()?.parse()?);
        let dims = Dims { tokens: self.small()?, seqs: self.small()?, blocks: self.small()?, rows: self.small()? };
        let count = self.number()?;
        let mut inputs = Vec::new();
        for _ in 0..count {
            inputs.push(match self.number()? {
                0 => RankInput::Host(Record::of(self.bytes()?)),
                _ => RankInput::Resident(self.number()?),
            });
        }
        Ok(RankCommand::Submit { program, kind, dims, inputs, reads: self.numbers()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<RankCommand> {
        let load = PlanLoad {
            id: 3,
            arena: 2,
            variant: Some("fetch=0".into()),
            weights: vec![("w".into(), 1)],
            kv_caches: vec![("k".into(), 7), ("v".into(), 8)],
            plan: "plan".into(),
        };
        let options = OpenOptions {
            threads: Some(2),
            isa: Some("avx2".into()),
            guarded: false,
            keep_stalled: true,
            experts: ExpertDivision::Whole,
        };
        let inputs = vec![RankInput::Host(Record::of(&[1u8, 2, 3])), RankInput::Resident(9)];
        let dims = Dims { tokens: 1, seqs: 2, blocks: 3, rows: 4 };
        vec![
            RankCommand::Open { backend: "cpu".into(), ordinal: 0, options },
            RankCommand::Open { backend: "sim".into(), ordinal: 1, options: OpenOptions::default() },
            RankCommand::Weight { id: 1, entry: "weight".into() },
            RankCommand::Rows { weight: 1, first_row: 64, bytes: vec![1, 2, 3] },
            RankCommand::Finish { weight: 1 },
            RankCommand::KvCache { id: 7, block: "f32[S, 2]".into(), k_width: 64, blocks: 8 },
            RankCommand::Load(Box::new(load)),
            RankCommand::Output { id: 9, program: 3, index: 1 },
            RankCommand::Submit { program: 3, kind: ExecutorKind::Persistent, dims, inputs, reads: vec![0, 2] },
            RankCommand::Drop { id: 9 },
            RankCommand::Ping,
            RankCommand::End,
            RankCommand::BecomeStage,
            RankCommand::Memory,
            RankCommand::ReadBlocks { cache: 7, blocks: vec![3, 1] },
            RankCommand::WriteBlocks { cache: 7, blocks: vec![2], contents: vec![5; 9] },
        ]
    }

    #[test]
    fn a_message_gives_its_commands_back() {
        let mut message = Vec::new();
        commands().iter().for_each(|command| command.write(&mut message));
        assert_eq!(RankCommand::read_all(&message), Ok(commands()));
    }

    #[test]
    fn a_message_that_is_cut_off_is_refused() {
        for command in commands() {
            let mut message = Vec::new();
            command.write(&mut message);
            for len in 1..message.len() {
                assert!(RankCommand::read_all(&message[..len]).is_err(), "{len} bytes of {command:?}");
            }
        }
        assert!(RankCommand::read_all(&u64::MAX.to_le_bytes()).is_err());
    }
}
