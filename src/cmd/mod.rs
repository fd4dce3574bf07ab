//! The commands: one file a family. Each parses no further than `args` does, calls a library, and prints.

mod checkpoint;
mod content;
mod copy;
mod diff;
mod doctor;
mod files;
mod history;
mod list;
mod log;
mod mount;
mod mounts;
mod server;
mod shadow;
mod space;
pub mod umount;
mod up;
mod version;

use crate::args;
use crate::cli::Command;
use crate::context::Context;
use crate::exit::Result;

/// Runs a command.
pub async fn run(ctx: &mut Context, command: Command) -> Result<()> {
    match command {
        Command::Up(args) => up::run(ctx, args).await,
        Command::Server(args) => server::run(ctx, args).await,
        Command::Doctor => doctor::run(ctx).await,
        Command::Space(args) => space::run(ctx, args).await,
        Command::Mount(args) => mount::run(ctx, *args).await,
        Command::Umount(args) => umount::run(ctx, &args),
        Command::Mounts => mounts::list(ctx).await,
        Command::Status(args) => mounts::status(ctx, &args).await,
        Command::Sync(args) => mounts::sync(ctx, &args),
        Command::Shadow(args) => shadow::run(ctx, args).await,
        Command::Checkpoint(args) => checkpoint::run(ctx, args).await,
        Command::Rollback(args) => history::rollback(ctx, args).await,
        Command::Restore(args) => history::restore(ctx, args).await,
        Command::Undo(args) => history::undo(ctx, args).await,
        Command::Redo(args) => history::redo(ctx, args).await,
        Command::Log(args) => log::log(ctx, args).await,
        Command::Diff(args) => diff::run(ctx, args).await,
        Command::Watch(args) => log::watch(ctx, args).await,
        Command::Fork(args) => space::fork(ctx, args).await,
        Command::Cat(args) => files::cat(ctx, &args).await,
        Command::Ls(args) => list::ls(ctx, &args).await,
        Command::Stat(args) => list::stat(ctx, &args).await,
        Command::Tree(args) => list::tree(ctx, &args).await,
        Command::Put(args) => files::put(ctx, &args).await,
        Command::Cp(args) => copy::run(ctx, args).await,
        Command::Rm(args) => files::rm(ctx, &args).await,
        Command::Mv(args) => files::mv(ctx, &args).await,
        Command::Mkdir(args) => files::mkdir(ctx, &args).await,
        Command::Completion(args) => version::completion(ctx, &args),
        Command::Version => version::version(ctx),
    }
}

/// Takes `--json` from behind `--`, where programs append it to a command that ends with paths.
pub fn json_after_dashes(command: &mut Command) -> bool {
    match command {
        Command::Restore(restore) => args::take_json(&mut restore.paths),
        Command::Diff(diff) => args::take_json(&mut diff.paths),
        _ => false,
    }
}
