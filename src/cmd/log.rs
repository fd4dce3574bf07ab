//! `agfs log` and `agfs watch`.

use crate::args::LogArgs;
use crate::cli::{Log, Watch};
use crate::context::Context;
use crate::exit::{Failure, Result};
use crate::output::json::{LogShape, VersionShape};
use crate::output::table::Table;
use crate::output::{size, text};
use crate::when;
use agfs_client::{FileVersion, LogFilter, LogLine, SystemClock};
use agfs_core::Seq;
use agfs_core::op::Author;
use futures::StreamExt;

/// How much of a hash a table shows, in digits.
const SHORT_HASH: usize = 12;

/// Runs `agfs log`.
pub async fn log(ctx: &mut Context, args: Log) -> Result<()> {
    // A name without a slash may be a file here; a look at the current directory is a look into the mount one is in.
    let exists =
        |name: &std::ffi::OsStr| ctx.inside().is_some() && std::path::Path::new(name).symlink_metadata().is_ok();
    let LogArgs { space, at, path } = ctx.here().log(args.args, exists)?;
    let since = args.since.as_deref().map(|s| when::parse_since(s, &SystemClock)).transpose()?;
    match path {
        None if !at.is_empty() => {
            Err(Failure::usage(format!("the log of a space has all of it: leave out @{at}, or name a path")))
        }
        None => {
            let filter = LogFilter { agent: args.agent, task: args.task, since, limit: args.limit.unwrap_or(0) };
            let lines = ctx.connect()?.log(&space, &filter).await?;
            operations(ctx, &lines)
        }
        Some(target) => {
            let path = ctx.path_in(&space, target)?;
            let mut versions = ctx.connect()?.file_log(&space, &path, &at).await?;
            versions.retain(|v| {
                let by = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|w| w == is);
                since.is_none_or(|s| v.time >= s) && by(&args.agent, &v.author.agent) && by(&args.task, &v.author.task)
            });
            if let Some(limit) = args.limit.and_then(|l| usize::try_from(l).ok()) {
                versions.truncate(limit);
            }
            file_versions(ctx, &versions)
        }
    }
}

fn by(author: &Author) -> [String; 3] {
    [&author.agent, &author.task, &author.step].map(|s| text(s.as_bytes()))
}

fn operations(ctx: &mut Context, lines: &[LogLine]) -> Result<()> {
    let shapes: Vec<LogShape> = lines.iter().map(LogShape::from).collect();
    ctx.out.show(&shapes, |out| {
        let mut table = Table::new(&[">SEQ", "TIME", "KIND", "AGENT", "TASK", "STEP", "PATH"]);
        for LogLine { record, path, from_path } in lines {
            let [agent, task, step] = by(&record.author);
            let path = match from_path {
                Some(from) => format!("{} <- {}", text(path), text(from)),
                None => text(path),
            };
            let (seq, kind) = (record.seq.0.to_string(), record.event.kind.code().to_owned());
            table.row([seq, when::short(record.time), kind, agent, task, step, path]);
        }
        out.table(&table)
    })
}

fn file_versions(ctx: &mut Context, versions: &[FileVersion]) -> Result<()> {
    let shapes: Vec<VersionShape> = versions.iter().map(VersionShape::from).collect();
    ctx.out.show(&shapes, |out| {
        let mut table = Table::new(&[">VERSION", ">SEQ", "TIME", ">SIZE", "HASH", "AGENT", "TASK", "STEP", "PATH"]);
        for v in versions {
            let [agent, task, step] = by(&v.author);
            let hash = v.hash.to_string();
            table.row([
                v.version_no.to_string(),
                v.seq.0.to_string(),
                when::short(v.time),
                size(v.size),
                hash.get(..SHORT_HASH).unwrap_or(&hash).to_owned(),
                agent,
                task,
                step,
                text(&v.path),
            ]);
        }
        out.table(&table)
    })
}

/// Runs `agfs watch`: one JSON object a line, until interrupted or the reader goes away.
pub async fn watch(ctx: &mut Context, args: Watch) -> Result<()> {
    let space = ctx.here().optional_space(args.space_name)?;
    let since = args.since.as_deref().map(parse_seq).transpose()?;
    let conn = ctx.connect()?;
    // A space that does not exist is said at once.
    conn.get_space(&space).await?;
    let mut events = conn.watch(&space, since);
    while let Some(event) = events.next().await {
        ctx.out.json_line(&LogShape::from(&event?))?;
    }
    Ok(())
}

/// `12` or `seq:12`.
fn parse_seq(text: &str) -> Result<Seq> {
    let number = text.strip_prefix("seq:").unwrap_or(text).parse().ok();
    number.map(Seq).ok_or_else(|| {
        Failure::usage(format!("--since {text:?} is no sequence number: give for instance 12 or seq:12"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers() {
        assert_eq!((parse_seq("12").unwrap(), parse_seq("seq:12").unwrap()), (Seq(12), Seq(12)));
        assert!(parse_seq("-1").is_err() && parse_seq("2h").is_err());
    }
}
