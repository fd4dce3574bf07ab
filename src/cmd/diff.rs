//! `agfs diff`: the list of paths, the lines counted, or a patch.

use super::content;
use crate::cli::Diff;
use crate::context::Context;
use crate::exit::{FOUND, Failure, Result};
use crate::output::json::{DiffShape, kind_word};
use crate::output::patch::{self, MAX_TEXT, Side};
use crate::output::stat::{FileStat, diffstat};
use crate::output::table::Table;
use crate::output::text;
use agfs_client::Connection;
use agfs_core::ErrorKind;
use agfs_core::diff::{DiffEntry, DiffKind};
use agfs_core::node::Node;
use std::collections::BTreeSet;

/// Runs `agfs diff`.
pub async fn run(ctx: &mut Context, args: Diff) -> Result<()> {
    let two = args.args.len() == 2;
    let (space, a, b) = ctx.here().diff(args.args)?;
    let paths = ctx.paths_in(&space, &args.paths)?;
    let conn = ctx.connect()?;
    let entries = conn.diff(&space, &a, &b, &paths).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound if two && !b.is_empty() => {
            error.context(format!("comparing {a} with {b} in {space} (for a space and a reference write --space)"))
        }
        _ => error,
    })?;
    let found = !entries.is_empty();
    match (args.patch, args.stat) {
        (false, false) => list(ctx, &entries)?,
        (wants_patch, _) => {
            let entries = with_renamed_below(&conn, &space, &b, entries).await?;
            contents(ctx, &conn, &entries, wants_patch, args.stat).await?;
        }
    }
    if found && args.exit_code {
        ctx.out.flush()?;
        return Err(Failure::Code(FOUND));
    }
    Ok(())
}

fn list(ctx: &mut Context, entries: &[DiffEntry]) -> Result<()> {
    let shapes: Vec<DiffShape> = entries.iter().map(|e| DiffShape::new(e, None, None)).collect();
    ctx.out.show(&shapes, |out| {
        let mut table = Table::new(&["CHANGE", "PATH", "FROM"]);
        for entry in entries {
            let from = entry.from.as_deref().map(text).unwrap_or_default();
            table.row([entry.kind.code().into(), text(&entry.path), from]);
        }
        out.table(&table)
    })
}

/// A patch knows files only: what lies below a directory that moved is added as moved too, unless it is listed already.
async fn with_renamed_below(
    conn: &Connection,
    space: &str,
    b: &str,
    entries: Vec<DiffEntry>,
) -> Result<Vec<DiffEntry>> {
    let listed: BTreeSet<Vec<u8>> = entries.iter().map(|e| e.path.clone()).collect();
    let mut out = Vec::with_capacity(entries.len());
    for entry in entries {
        let moved = (entry.kind == DiffKind::Renamed).then(|| entry.from.clone()).flatten();
        let dir = entry.after.clone().filter(|n| n.kind().is_dir());
        let to = entry.path.clone();
        out.push(entry);
        if let (Some(from), Some(dir)) = (moved, dir) {
            content::walk(conn, (space, b), &dir, usize::MAX, |step| {
                let path = [&to, &b"/"[..], &step.path].concat();
                if !step.node.kind().is_dir() && !listed.contains(&path) {
                    let from = Some([&from, &b"/"[..], &step.path].concat());
                    let (before, after) = (Some(step.node.clone()), Some(step.node));
                    out.push(DiffEntry { kind: DiffKind::Renamed, path, from, before, after });
                }
                Ok(())
            })
            .await?;
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

async fn contents(
    ctx: &mut Context,
    conn: &Connection,
    entries: &[DiffEntry],
    wants_patch: bool,
    wants_stat: bool,
) -> Result<()> {
    let mut shapes = Vec::new();
    let mut stats = Vec::new();
    for entry in entries {
        let Some((part, stat)) = one(conn, entry).await? else { continue };
        if ctx.json() {
            shapes.push(DiffShape::new(entry, Some(&stat), wants_patch.then_some(&*part)));
        } else if wants_patch && !wants_stat {
            // Sent off part by part: a patch may be far larger than memory.
            ctx.out.bytes(&colored(&part, ctx.out.color()))?;
        }
        stats.push((&*entry.path, entry.from.as_deref(), stat));
    }
    if ctx.json() {
        return ctx.out.json(&shapes);
    }
    if wants_stat && !stats.is_empty() {
        let color = ctx.out.color();
        ctx.out.bytes(diffstat(&stats, color).as_bytes())?;
    }
    if wants_stat && wants_patch {
        ctx.out.line("")?;
        for entry in entries {
            if let Some((part, _)) = one(conn, entry).await? {
                ctx.out.bytes(&colored(&part, ctx.out.color()))?;
            }
        }
    }
    Ok(())
}

/// The part of the patch for one entry, and its lines counted; `None` for directories, which no patch has.
async fn one(conn: &Connection, entry: &DiffEntry) -> Result<Option<(Vec<u8>, FileStat)>> {
    let moved = matches!((&entry.before, &entry.after), (Some(a), Some(b)) if agfs_core::diff::same_body(a, b));
    let old_path = entry.from.as_deref().unwrap_or(&entry.path);
    let before = side(conn, entry.before.as_ref(), old_path, moved).await?;
    let after = side(conn, entry.after.as_ref(), &entry.path, moved).await?;
    if before.is_some() || after.is_some() {
        return Ok(Some(patch::file(before.as_ref(), after.as_ref())));
    }
    let special = entry.after.as_ref().or(entry.before.as_ref()).filter(|n| !n.kind().is_dir());
    Ok(special.map(|n| (patch::other(&entry.path, kind_word(n.kind()), entry.kind.code()), FileStat::default())))
}

/// One side of an entry; without its content when that is the same on both.
async fn side(conn: &Connection, node: Option<&Node>, path: &[u8], same: bool) -> Result<Option<Side>> {
    let Some((node, mode)) = node.and_then(|n| Some((n, patch::git_mode(n)?))) else { return Ok(None) };
    let content = match node.content() {
        _ if same => None,
        Some(content) => content::bytes(conn, content, MAX_TEXT).await?,
        None => patch::link_target(node),
    };
    Ok(Some(Side { path: path.to_vec(), mode, content, size: node.size() }))
}

/// A patch with the colours that git gives it.
fn colored(part: &[u8], color: bool) -> Vec<u8> {
    if !color {
        return part.to_vec();
    }
    let mut out = Vec::with_capacity(part.len() * 2);
    for line in part.split_inclusive(|&b| b == b'\n') {
        let code: &[u8] = match line {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => b"\x1b[1m",
            [b'+', ..] => b"\x1b[32m",
            [b'-', ..] => b"\x1b[31m",
            [b'@', b'@', ..] => b"\x1b[36m",
            _ => b"",
        };
        let end = if line.ends_with(b"\n") { line.len() - 1 } else { line.len() };
        out.extend_from_slice(code);
        out.extend_from_slice(&line[..end]);
        out.extend_from_slice(if code.is_empty() { b"" } else { b"\x1b[0m" });
        out.extend_from_slice(&line[end..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_changes_nothing_but_colour() {
        let part = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n c";
        assert_eq!(colored(part, false), part);
        let text = String::from_utf8(colored(part, true)).unwrap();
        assert!(text.contains("\x1b[31m-a\x1b[0m\n") && text.contains("\x1b[32m+b\x1b[0m\n") && text.ends_with("\n c"));
    }
}
