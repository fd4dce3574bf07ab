//! Programs run to their end under a deadline, with their output kept. A program that hangs on a dead mount fails its
//! test; it does not hang the run.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a program left behind.
pub struct Done {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it printed.
    pub stdout: Vec<u8>,
    /// All that it complained.
    pub stderr: Vec<u8>,
    /// How long it took.
    pub took: Duration,
}

impl Done {
    /// The exit code; fails the test when a signal ended the program.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {}\n{}", self.status, self.err()))
    }

    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The end of everything printed, for messages.
    pub fn tail(&self) -> String {
        format!("{}{}", last(&self.out(), 1500), last(&self.err(), 3000))
    }
}

/// The last `n` bytes of a text, at a character's start.
pub fn last(text: &str, n: usize) -> &str {
    let mut from = text.len().saturating_sub(n);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// The program and its arguments, without the environment that [`Command`]'s own form would show.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs the program with `input` on its standard input; kills it and its children, and fails the test, after `limit`.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> Done {
    let what = line(command);
    // Files and not pipes: nobody has to read along, and a child that outlives the program holds nothing up.
    let (mut stdin, mut stdout, mut stderr) = (scratch(), scratch(), scratch());
    stdin.write_all(input).unwrap();
    stdin.rewind().unwrap();
    command.stdin(stdin).stdout(Stdio::from(stdout.try_clone().unwrap()));
    command.stderr(Stdio::from(stderr.try_clone().unwrap())).process_group(0);
    let begin = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {what}: {e} (deploy/bootstrap.sh test)"));
    let mut wait = Duration::from_micros(200);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if begin.elapsed() > limit {
            break None;
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(Duration::from_millis(20));
    };
    let took = begin.elapsed();
    if status.is_none() {
        let group = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let done =
        Done { status: status.unwrap_or_default(), stdout: content(&mut stdout), stderr: content(&mut stderr), took };
    // A program stuck in the kernel cannot be waited for: the test ends here, whatever becomes of it.
    assert!(status.is_some(), "still running after {limit:?}: {what}\n{}", done.tail());
    done
}

fn scratch() -> File {
    tempfile::tempfile().expect("a temporary file for a program's output")
}

fn content(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}
