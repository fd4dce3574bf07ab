//! Files without a mount, as typed.

use super::{Attribution, Care};
use clap::Args;
use std::ffi::OsString;

/// `agfs cat`
#[derive(Args, Debug)]
pub struct Cat {
    /// SPACE[@REF]:/PATH, or /PATH inside a mount
    #[arg(required = true, value_name = "LOCATION")]
    pub locations: Vec<OsString>,
}

/// `agfs ls`
#[derive(Args, Debug)]
pub struct Ls {
    /// SPACE[@REF][:/PATH], or /PATH inside a mount
    #[arg(value_name = "LOCATION")]
    pub location: Option<OsString>,
    /// Kind, mode, size, time and version too
    #[arg(long, short = 'l')]
    pub long: bool,
}

/// `agfs stat`
#[derive(Args, Debug)]
pub struct Stat {
    /// SPACE[@REF][:/PATH], or /PATH inside a mount
    #[arg(required = true, value_name = "LOCATION")]
    pub location: OsString,
    /// Guess the type of the content from the name and the first bytes
    #[arg(long)]
    pub mime: bool,
}

/// `agfs tree`
#[derive(Args, Debug)]
pub struct Tree {
    /// SPACE[@REF][:/PATH], or /PATH inside a mount
    #[arg(value_name = "LOCATION")]
    pub location: Option<OsString>,
    /// How many levels to show
    #[arg(long, short = 'L', value_name = "LEVELS")]
    pub depth: Option<u32>,
}

/// `agfs put`
#[derive(Args, Debug)]
pub struct Put {
    /// SPACE:/PATH
    #[arg(value_name = "LOCATION")]
    pub location: OsString,
    /// Permission bits, in octal [default: 644 for a new file, unchanged for one that is there]
    #[arg(long)]
    pub mode: Option<String>,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs cp`
#[derive(Args, Debug)]
#[command(override_usage = "agfs cp [OPTIONS] SRC... DST")]
pub struct Cp {
    /// What to copy, and where to: local paths, or SPACE[@REF]:/PATH (the target without @REF)
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    pub paths: Vec<OsString>,
    /// Directories with all that is below them
    #[arg(long, short = 'r', alias = "R")]
    pub recursive: bool,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs rm`
#[derive(Args, Debug)]
pub struct Rm {
    /// SPACE:/PATH
    #[arg(required = true, value_name = "LOCATION")]
    pub locations: Vec<OsString>,
    /// Directories with all that is below them
    #[arg(long, short = 'r')]
    pub recursive: bool,
    /// What does not exist is no error
    #[arg(long, short = 'f')]
    pub force: bool,
    /// How careful to be
    #[command(flatten)]
    pub care: Care,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs mv`
#[derive(Args, Debug)]
pub struct Mv {
    /// SPACE:/PATH
    #[arg(value_name = "SRC")]
    pub from: OsString,
    /// SPACE:/PATH in the same space; an existing directory is moved into
    #[arg(value_name = "DST")]
    pub to: OsString,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}

/// `agfs mkdir`
#[derive(Args, Debug)]
pub struct Mkdir {
    /// SPACE:/PATH
    #[arg(required = true, value_name = "LOCATION")]
    pub locations: Vec<OsString>,
    /// Make parents too; what exists is no error
    #[arg(long, short = 'p')]
    pub parents: bool,
    /// Who
    #[command(flatten)]
    pub by: Attribution,
}
