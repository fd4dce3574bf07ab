//! `agfs rollback`, `restore`, `undo` and `redo`.

use crate::cli::{Restore, Rollback, Undo};
use crate::context::Context;
use crate::exit::{Failure, Result};
use crate::output::json::HistoryShape;
use crate::output::{confirmed, count, text};
use agfs_client::HistoryResult;
use agfs_core::OpId;

/// Runs `agfs rollback`.
pub async fn rollback(ctx: &mut Context, args: Rollback) -> Result<()> {
    let (space, reference) = ctx.here().space_and_ref(args.args)?;
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    if args.care.dry_run {
        let would = conn.rollback(&space, &reference, &author, true).await?;
        let line = format!("{space} would go back to {reference}; {} would be set aside", changes(would.set_aside));
        return done(ctx, &would, true, &line);
    }
    if !confirmed(&format!("Put all of {space} back to {reference}?"), args.care.yes, ctx.json()) {
        return ctx.out.line("nothing changed");
    }
    let result = conn.rollback(&space, &reference, &author, false).await?;
    let line = format!(
        "{space} is back at {reference} ({}); {} set aside\n`agfs undo {space} {}` takes it back",
        result.op,
        changes(result.set_aside),
        result.op
    );
    done(ctx, &result, false, &line)
}

/// Runs `agfs restore`.
pub async fn restore(ctx: &mut Context, args: Restore) -> Result<()> {
    let (space, reference) = ctx.here().space_and_ref(args.args)?;
    let paths = ctx.paths_in(&space, &args.paths)?;
    if paths.is_empty() {
        return Err(Failure::usage("no path is given: agfs restore [SPACE] REF -- PATH..."));
    }
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    let names = paths.iter().map(|p| text(p)).collect::<Vec<_>>().join(", ");
    if args.care.dry_run {
        let would = conn.restore(&space, &reference, &paths, &author, true).await?;
        return done(ctx, &would, true, &format!("{} would be made to restore {names}", changes(would.changed)));
    }
    if !confirmed(&format!("Put {names} back to {reference}?"), args.care.yes, ctx.json()) {
        return ctx.out.line("nothing changed");
    }
    let result = conn.restore(&space, &reference, &paths, &author, false).await?;
    let line = format!("{names} restored from {reference} ({}); {}", result.op, changes(result.changed));
    done(ctx, &result, false, &line)
}

/// Runs `agfs undo`.
pub async fn undo(ctx: &mut Context, args: Undo) -> Result<()> {
    take_back(ctx, args, Direction::Undo).await
}

/// Runs `agfs redo`.
pub async fn redo(ctx: &mut Context, args: Undo) -> Result<()> {
    take_back(ctx, args, Direction::Redo).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Undo,
    Redo,
}

async fn take_back(ctx: &mut Context, args: Undo, direction: Direction) -> Result<()> {
    let (space, op) = ctx.here().space_and_op(args.args)?;
    let op: Option<OpId> = op.map(|op| op.parse()).transpose()?;
    let author = ctx.config.author(&args.by);
    let conn = ctx.connect()?;
    let what = op.map_or("the last operation".to_owned(), |op| op.to_string());
    let (verb, past) = match direction {
        Direction::Undo => ("Take back", "taken back"),
        Direction::Redo => ("Do again", "done again"),
    };
    let dry_run = args.care.dry_run;
    if !dry_run && !confirmed(&format!("{verb} {what} in {space}?"), args.care.yes, ctx.json()) {
        return ctx.out.line("nothing changed");
    }
    let result = match direction {
        Direction::Undo => conn.undo(&space, op, &author, dry_run).await?,
        Direction::Redo => conn.redo(&space, op, &author, dry_run).await?,
    };
    let subject = result.subject.map_or(what, |op| op.to_string());
    let line = match dry_run {
        true => format!("{subject} would be {past}"),
        false => format!("{subject} {past} ({}); {space} is at {}", result.op, result.seq),
    };
    let line = match (result.set_aside, direction) {
        (0, _) => line,
        (n, Direction::Undo) => format!("{line}; {} made since set aside (`agfs redo` brings them back)", changes(n)),
        (n, Direction::Redo) => format!("{line}; {} made since set aside (they stay in history)", changes(n)),
    };
    done(ctx, &result, dry_run, &line)
}

fn changes(n: u64) -> String {
    count(n, "change", "changes")
}

fn done(ctx: &mut Context, result: &HistoryResult, dry_run: bool, line: &str) -> Result<()> {
    ctx.out.show(&HistoryShape::new(result, dry_run), |out| out.line(line))
}
