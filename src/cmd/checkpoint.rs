//! `agfs checkpoint …`

use crate::cli::{CheckpointCommand, CheckpointCreate, CheckpointDelete};
use crate::context::Context;
use crate::exit::Result;
use crate::output::json::CheckpointShape;
use crate::output::table::Table;
use crate::output::{Out, confirmed, text};
use crate::when;
use agfs_core::space::{Cause, Checkpoint, check_checkpoint_name};

/// Runs `agfs checkpoint …`.
pub async fn run(ctx: &mut Context, command: CheckpointCommand) -> Result<()> {
    match command {
        CheckpointCommand::Create(args) => create(ctx, args).await,
        CheckpointCommand::List(args) => {
            let space = ctx.here().optional_space(args.name)?;
            let all = ctx.connect()?.list_checkpoints(&space).await?;
            list(&mut ctx.out, &all)
        }
        CheckpointCommand::Show(args) => {
            let (space, reference) = ctx.here().space_and_ref(args.args)?;
            let checkpoint = ctx.connect()?.get_checkpoint(&space, &reference).await?;
            show(&mut ctx.out, &checkpoint)
        }
        CheckpointCommand::Delete(args) => delete(ctx, args).await,
        CheckpointCommand::Pin(args) => {
            let (space, reference) = ctx.here().space_and_ref(args.args)?;
            let checkpoint = ctx.connect()?.pin_checkpoint(&space, &reference, !args.off).await?;
            let what = if args.off { "is no longer pinned" } else { "is pinned" };
            say(&mut ctx.out, &checkpoint, what)
        }
    }
}

/// How a checkpoint is called in a sentence.
fn called(checkpoint: &Checkpoint) -> String {
    match checkpoint.name.as_str() {
        "" => checkpoint.id.to_string(),
        name => format!("{} ({})", text(name.as_bytes()), checkpoint.id),
    }
}

fn say(out: &mut Out, checkpoint: &Checkpoint, what: &str) -> Result<()> {
    out.show(&CheckpointShape::from(checkpoint), |out| out.line(&format!("{} {what}", called(checkpoint))))
}

async fn create(ctx: &mut Context, args: CheckpointCreate) -> Result<()> {
    let space = ctx.here().optional_space(args.space_name)?;
    if !args.name.is_empty() {
        check_checkpoint_name(&args.name)?;
    }
    let cause = Cause::from_code(&args.cause).map_err(|e| e.context("--cause"))?;
    let author = ctx.config.author(&args.by);
    let checkpoint = ctx.connect()?.create_checkpoint(&space, &args.name, &args.note, cause, &author).await?;
    say(&mut ctx.out, &checkpoint, &format!("names {} of {space}", checkpoint.at.seq))
}

fn list(out: &mut Out, all: &[Checkpoint]) -> Result<()> {
    let shapes: Vec<CheckpointShape> = all.iter().map(CheckpointShape::from).collect();
    out.show(&shapes, |out| {
        let mut table = Table::new(&["NAME", "ID", ">SEQ", "CREATED", "CAUSE", "AGENT", "TASK", "PINNED", "NOTE"]);
        for c in all {
            table.row([
                text(c.name.as_bytes()),
                c.id.to_string(),
                c.at.seq.0.to_string(),
                when::short(c.created),
                c.cause.code().into(),
                text(c.author.agent.as_bytes()),
                text(c.author.task.as_bytes()),
                if c.pinned { "yes".into() } else { String::new() },
                text(c.note.as_bytes()),
            ]);
        }
        out.table(&table)
    })
}

fn show(out: &mut Out, c: &Checkpoint) -> Result<()> {
    out.show(&CheckpointShape::from(c), |out| {
        let mut table = Table::new(&["CHECKPOINT", "VALUE"]);
        table.row(["name".into(), text(c.name.as_bytes())]);
        table.row(["id".into(), c.id.to_string()]);
        table.row(["at".into(), format!("{} of {}", c.at.seq, c.at.timeline)]);
        table.row(["cause".into(), c.cause.code().into()]);
        table.row(["agent".into(), text(c.author.agent.as_bytes())]);
        table.row(["task".into(), text(c.author.task.as_bytes())]);
        table.row(["step".into(), text(c.author.step.as_bytes())]);
        table.row(["note".into(), text(c.note.as_bytes())]);
        table.row(["pinned".into(), if c.pinned { "yes" } else { "no" }.into()]);
        table.row(["created".into(), when::rfc3339(c.created)]);
        out.table(&table)
    })
}

async fn delete(ctx: &mut Context, args: CheckpointDelete) -> Result<()> {
    let (space, reference) = ctx.here().space_and_ref(args.args)?;
    let conn = ctx.connect()?;
    let checkpoint = conn.get_checkpoint(&space, &reference).await?;
    if args.care.dry_run {
        return say(&mut ctx.out, &checkpoint, "would be deleted");
    }
    if !confirmed(&format!("Delete the checkpoint {}?", called(&checkpoint)), args.care.yes, ctx.json()) {
        return ctx.out.line("nothing deleted");
    }
    // By its id: what was shown is what goes, whatever the reference means by now.
    let checkpoint = conn.delete_checkpoint(&space, &checkpoint.id.to_string()).await?;
    say(&mut ctx.out, &checkpoint, "deleted; the state stays in history")
}
