//! What can be typed: the clap definitions, one file a command family. Nothing is run here and no default that the
//! configuration can change is set here.

mod files;
mod history;
mod mount;
mod server;
mod space;

pub use files::*;
pub use history::*;
pub use mount::*;
pub use server::*;
pub use space::*;

use clap::builder::Styles;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A versioned file system for AI agents.
#[derive(Debug, Parser)]
#[command(name = "agfs", bin_name = "agfs", version, propagate_version = false, subcommand_required = true, arg_required_else_help = true,
    styles = Styles::plain(), max_term_width = 110,
    after_help = "SPACE may be left out inside a mount.\n\
        REF is a checkpoint's name or id, @-1 (the last checkpoint), seq:NUMBER, a time\n\
        (@2h or RFC 3339) or an operation id.\n\
        Exit codes: 0 ok, 1 error, 2 usage, 3 differences or problems found, 4 conflict,\n\
        5 not found, 6 refused, 124 timed out.")]
pub struct Cli {
    /// What every command understands.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Print JSON on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// The server's address [env: AGFS_SERVER] [default: http://127.0.0.1:7420]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The space meant where SPACE is left out [env: AGFS_SPACE]
    #[arg(long, global = true, value_name = "SPACE")]
    pub space: Option<String>,
    /// The configuration file to use in place of the user's [env: AGFS_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to log to standard error, as a tracing filter [env: AGFS_LOG] [default: warn]
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
}

/// Who changes are recorded for.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Attribution")]
pub struct Attribution {
    /// The agent that changes are recorded for [env: AGFS_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// The task that changes are recorded for [env: AGFS_TASK]
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// The step of the task [env: AGFS_STEP]
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
}

/// How careful a destructive command is.
#[derive(Args, Clone, Debug, Default)]
pub struct Care {
    /// Say what would happen and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A server (if none answers), the space `default` and a mount of it, in the foreground
    Up(Up),
    /// The server
    #[command(subcommand)]
    Server(Server),
    /// Check what works on this machine, with a remedy for what does not
    Doctor,
    /// Spaces: create, list, show, delete
    #[command(subcommand)]
    Space(SpaceCommand),
    /// Mount a space at a directory
    Mount(Box<Mount>),
    /// Drain and unmount
    Umount(Umount),
    /// The live mounts of the server
    Mounts,
    /// What a mount is doing: lease, lag, pending, cache and shadow use
    Status(OneMount),
    /// Return when everything written so far is durable on the server
    Sync(Sync),
    /// Shadow directories of a mount: what stays on this machine's disk
    #[command(subcommand)]
    Shadow(Shadow),
    /// Checkpoints: create, list, show, delete, pin
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Put the whole space back to a reference; live mounts follow
    Rollback(Rollback),
    /// Put files or directories back as they were, as new changes on top
    Restore(Restore),
    /// Take back the last rollback or restore, or the one named
    Undo(Undo),
    /// Do again what undo took back
    Redo(Undo),
    /// The operations of a space, or the versions of one file
    Log(Log),
    /// What differs between two references
    Diff(Diff),
    /// Events as they happen, one JSON object a line
    Watch(Watch),
    /// A second space that begins as this one is, or was
    Fork(Fork),
    /// Print a file
    Cat(Cat),
    /// List a directory
    Ls(Ls),
    /// Everything known of a file or directory
    Stat(Stat),
    /// List a directory and what is below it
    Tree(Tree),
    /// Write standard input to a file
    Put(Put),
    /// Copy between spaces and local files
    Cp(Cp),
    /// Remove files or directories
    Rm(Rm),
    /// Move or rename within a space
    Mv(Mv),
    /// Make directories
    Mkdir(Mkdir),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Print the version
    Version,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_of_one_line() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }
}
