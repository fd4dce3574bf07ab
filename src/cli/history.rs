//! Going back and looking back, as typed. Which of the free arguments is the space is decided in `args`.

use super::{Attribution, Care};
use clap::Args;
use std::ffi::OsString;

/// `agfs rollback`
#[derive(Args, Debug)]
#[command(override_usage = "agfs rollback [OPTIONS] [SPACE] REF")]
pub struct Rollback {
    /// The space (left out inside a mount), and the reference to go back to
    #[arg(value_name = "[SPACE] REF", required = true, num_args = 1..=2)]
    pub args: Vec<String>,
    /// How careful to be
    #[command(flatten)]
    pub care: Care,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs restore`
#[derive(Args, Debug)]
#[command(override_usage = "agfs restore [OPTIONS] [SPACE] REF -- PATH...")]
pub struct Restore {
    /// The space (left out inside a mount), and the reference to take the files from
    #[arg(value_name = "[SPACE] REF", required = true, num_args = 1..=2)]
    pub args: Vec<String>,
    /// Files or directories: /PATH from the root of the space, ./PATH from here inside a mount
    #[arg(last = true, required = true, value_name = "PATH")]
    pub paths: Vec<OsString>,
    /// How careful to be
    #[command(flatten)]
    pub care: Care,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs undo` and `agfs redo`
#[derive(Args, Debug)]
pub struct Undo {
    /// The space (left out inside a mount), and the operation (op-…); the last one when left out
    #[arg(value_name = "SPACE OP", num_args = 0..=2)]
    pub args: Vec<String>,
    /// How careful to be
    #[command(flatten)]
    pub care: Care,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs log`
#[derive(Args, Debug)]
#[command(override_usage = "agfs log [OPTIONS] [SPACE] [PATH]")]
pub struct Log {
    /// The space (left out inside a mount), and a file whose versions to list
    #[arg(value_name = "SPACE PATH", num_args = 0..=2)]
    pub args: Vec<OsString>,
    /// Only what this agent did
    #[arg(long)]
    pub agent: Option<String>,
    /// Only what was done for this task
    #[arg(long)]
    pub task: Option<String>,
    /// Only what happened since: a time (RFC 3339) or how long ago (2h, 1d12h)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// At most this many, the newest
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub limit: Option<u64>,
}

/// `agfs diff`
#[derive(Args, Debug)]
#[command(override_usage = "agfs diff [OPTIONS] [SPACE] A [B] [-- PATH...]")]
pub struct Diff {
    /// The space (left out inside a mount), the reference before, and the reference after (the present when left out)
    #[arg(value_name = "[SPACE] A [B]", required = true, num_args = 1..=3)]
    pub args: Vec<String>,
    /// Only these files or directories and what is below them
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<OsString>,
    /// Print a patch that `git apply` accepts
    #[arg(long, short = 'p')]
    pub patch: bool,
    /// Count the lines added and removed
    #[arg(long)]
    pub stat: bool,
    /// Exit with 3 when anything differs
    #[arg(long)]
    pub exit_code: bool,
}

/// `agfs watch`
#[derive(Args, Debug)]
pub struct Watch {
    /// The space; left out inside a mount
    #[arg(value_name = "SPACE")]
    pub space_name: Option<String>,
    /// Begin after this sequence number in place of the present
    #[arg(long, value_name = "SEQ")]
    pub since: Option<String>,
}

/// `agfs fork`
#[derive(Args, Debug)]
#[command(override_usage = "agfs fork [OPTIONS] [SPACE[@REF]] NEW")]
pub struct Fork {
    /// The space and the point to begin at (left out inside a mount), and the name of the new space
    #[arg(value_name = "[SPACE[@REF]] NEW", required = true, num_args = 1..=2)]
    pub args: Vec<OsString>,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}
