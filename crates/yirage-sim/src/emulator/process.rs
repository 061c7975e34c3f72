//! A program of kernels as it runs, and how it is told what to launch.

use super::compiler::EmulatorProgram;
use super::{EmulatedLaunch, EmulatorError};
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use yirage_kir::BufferAccess;

/// A program that is run when it is first wanted, and again after a launch that ended it.
#[derive(Debug)]
pub(super) struct EmulatorProcess {
    program: EmulatorProgram,
    running: Option<RunningProgram>,
}

#[derive(Debug)]
struct RunningProgram {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl EmulatorProcess {
    /// The program, not run yet.
    pub(super) fn new(program: EmulatorProgram) -> EmulatorProcess {
        EmulatorProcess { program, running: None }
    }

    /// Runs a launch.
    pub(super) fn run(&mut self, launch: EmulatedLaunch<'_, '_>) -> Result<(), EmulatorError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        // A program that found something wrong has ended, and one that ended otherwise says nothing.
        running.launch(launch).map_err(|e| EmulatorError::Launch(format!("the program of kernels: {e}")))??;
        self.running = Some(running);
        Ok(())
    }

    fn start(&self) -> Result<RunningProgram, EmulatorError> {
        let path = self.program.path();
        let failed = |why: String| EmulatorError::System { what: path.display().to_string(), why };
        let mut child = Command::new(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, answers) = pipes.ok_or_else(|| failed("it has no pipes".into()))?;
        Ok(RunningProgram { child, requests, answers })
    }
}

impl RunningProgram {
    /// Tells the program what to run, and takes what it wrote. The numbers are those that `cpp/host.cpp` describes.
    fn launch(&mut self, launch: EmulatedLaunch<'_, '_>) -> io::Result<Result<(), EmulatorError>> {
        let EmulatedLaunch { kernel, grid, seed, buffers } = launch;
        let is_written = |at: usize| kernel.buffers.get(at).is_some_and(|b| b.access != BufferAccess::Read);
        let mut request = Vec::new();
        let mut word = |word: u32| request.extend(word.to_ne_bytes());
        word(kernel.name.len() as u32);
        request.extend(kernel.name.as_bytes());
        let mut word = |word: u32| request.extend(word.to_ne_bytes());
        [seed, grid[0], grid[1], grid[2], buffers.len() as u32].into_iter().for_each(&mut word);
        for (at, buffer) in buffers.iter().enumerate() {
            word(buffer.len() as u32);
            word(u32::from(is_written(at)));
            buffer.iter().copied().for_each(&mut word);
        }
        self.requests.write_all(&request)?;
        self.requests.flush()?;
        let length = self.answer(4)?;
        let length = u32::from_ne_bytes([length[0], length[1], length[2], length[3]]);
        if length > 0 {
            let why = self.answer(length as usize)?;
            return Ok(Err(EmulatorError::Launch(String::from_utf8_lossy(&why).into_owned())));
        }
        for (_, buffer) in buffers.iter_mut().enumerate().filter(|(at, _)| is_written(*at)) {
            let bytes = self.answer(buffer.len() * 4)?;
            for (word, bytes) in buffer.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
        Ok(Ok(()))
    }

    fn answer(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; bytes];
        self.answers.read_exact(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // One that has ended by itself is killed no more; either way nobody else waits for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
