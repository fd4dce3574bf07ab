//! Whether an answer of `lseek` for data or a hole is right. Which ranges are holes is the file system's choice, so the
//! answer is held against the content: no data may be left out, and a hole must read as zeros.

use crate::outcome::{Answer, Outcome};

/// How much of a long range is read to judge it, in bytes.
const LOOK: u64 = 1 << 20;

/// A file's content, to be judged by.
pub struct Content<'a> {
    /// In bytes.
    pub size: u64,
    /// Reads so many bytes from there on; fewer at the end.
    pub read: &'a dyn Fn(u64, u64) -> Result<Vec<u8>, i32>,
}

impl Content<'_> {
    /// Judges where data from `at` on is said to be, `None` for nowhere.
    pub fn data(&self, at: u64, found: Option<u64>) -> Answer {
        self.judge(at, found, |to| {
            let to = to.unwrap_or(self.size);
            if to < at || to > self.size || found == Some(self.size) {
                return Err(format!("data from {at} on is said to be at {found:?} of {}", self.size));
            }
            let len = (to - at).min(LOOK);
            if self.zeros(at, len)? && self.zeros(to - len, len)? {
                return Ok(());
            }
            Err(format!("data from {at} on is said to be at {found:?}, but there is some before"))
        })
    }

    /// Judges where a hole from `at` on is said to be, `None` for nowhere.
    pub fn hole(&self, at: u64, found: Option<u64>) -> Answer {
        self.judge(at, found, |to| match to {
            Some(to) if to == self.size => Ok(()),
            Some(to) if to >= at && to < self.size && self.zeros(to, 1)? => Ok(()),
            _ => Err(format!("a hole from {at} on is said to be at {found:?} of {}", self.size)),
        })
    }

    /// At the end of the file there is neither; before, the answer is judged.
    fn judge(&self, at: u64, found: Option<u64>, judge: impl FnOnce(Option<u64>) -> Result<(), String>) -> Answer {
        if at >= self.size {
            return found.map_or(Err(libc::ENXIO), |to| Ok(Outcome::Number(to)));
        }
        Ok(Outcome::Judged(judge(found)))
    }

    /// Whether there are only zeros. A file that is open for writing only is taken at its word.
    fn zeros(&self, at: u64, len: u64) -> Result<bool, String> {
        match (self.read)(at, len) {
            Ok(bytes) => Ok(bytes.iter().all(|b| *b == 0)),
            Err(libc::EBADF) => Ok(true),
            Err(e) => Err(format!("cannot read at {at}: {}", crate::outcome::errno_name(e))),
        }
    }
}
