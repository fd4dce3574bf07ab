//! `agfs shadow list`: the shadow directories in a mount's tree, and what they hold on this machine.

use super::content;
use crate::cli::{OneMount, Shadow};
use crate::context::Context;
use crate::exit::Result;
use crate::output::json::lossy;
use crate::output::table::Table;
use crate::output::{size, text};
use agfs_client::Connection;
use agfs_core::node::Node;
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Serialize)]
struct ShadowShape {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    file_id: u64,
    files: u64,
    bytes: u64,
    #[serde(skip)]
    raw: Vec<u8>,
}

/// Runs `agfs shadow …`.
pub async fn run(ctx: &mut Context, command: Shadow) -> Result<()> {
    match command {
        Shadow::List(args) => list(ctx, &args).await,
    }
}

async fn list(ctx: &mut Context, args: &OneMount) -> Result<()> {
    let mut found = ctx.mount_at(args.dir.as_deref())?;
    found.inner = b"/".to_vec();
    let space = found.space.clone().unwrap_or_default();
    let at = found.entry.as_ref().map(|e| e.at.clone()).unwrap_or_default();
    let base = found.space_path()?;
    let conn = ctx.connect()?;
    let mut shapes = Vec::new();
    for (below, file_id) in shadows(&conn, (&space, &at), &base).await? {
        let local = found.mountpoint.join(OsStr::from_bytes(&below));
        let usage = tokio::task::spawn_blocking(move || usage(&local)).await;
        let (files, bytes) = usage.map_err(|e| agfs_core::Error::internal(format!("measuring: {e}")))?;
        let raw = [base.strip_suffix(b"/").unwrap_or(&base), b"/", &below].concat();
        let (path, path_b64) = lossy(&raw);
        shapes.push(ShadowShape { path, path_b64, file_id, files, bytes, raw });
    }
    ctx.out.show(&shapes, |out| {
        let mut table = Table::new(&["PATH", ">FILES", ">SIZE"]);
        for shape in &shapes {
            table.row([text(&shape.raw), shape.files.to_string(), size(shape.bytes)]);
        }
        out.table(&table)
    })
}

/// The shadow directories below a directory of the tree: their paths from there, and their ids.
async fn shadows(conn: &Connection, (space, at): (&str, &str), base: &[u8]) -> Result<Vec<(Vec<u8>, u64)>> {
    let (top, _) = content::node(conn, space, at, base).await?;
    let mut out = Vec::new();
    let mut open: Vec<(Vec<u8>, Node)> = vec![(Vec::new(), top)];
    // Only directories that hold directories are listed.
    while let Some((path, dir)) = open.pop() {
        for (name, node) in conn.list_dir(space, at, dir.file_id).await?.entries {
            let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
            let below = || [&path, slash, name.as_bytes()].concat();
            if node.is_shadow() {
                out.push((below(), node.file_id.0));
            } else if node.dir().is_some_and(|d| d.subdirs > 0) {
                open.push((below(), node));
            }
        }
    }
    out.sort();
    Ok(out)
}

/// The files below a directory of this machine and what they take, in bytes; what cannot be read counts as nothing.
fn usage(dir: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let (mut files, mut bytes) = (0, 0);
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) => {
                    files += 1;
                    bytes += meta.blocks() * 512;
                }
                Err(_) => {}
            }
        }
    }
    (files, bytes)
}
