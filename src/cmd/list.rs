//! `agfs ls`, `stat` and `tree`.

use super::content;
use crate::cli::{Ls, Stat, Tree};
use crate::context::Context;
use crate::exit::Result;
use crate::location::last_name;
use crate::output::json::{EntryShape, NodeShape, kind_word};
use crate::output::table::Table;
use crate::output::{count, size, text};
use crate::when;
use agfs_client::Connection;
use agfs_core::manifest::{Extent, Manifest};
use agfs_core::node::{Body, Node, NodeKind};

/// How much of a file a guess of its type looks at, in bytes.
const SNIFF: u64 = 8_192;

/// Runs `agfs ls`.
pub async fn ls(ctx: &mut Context, args: &Ls) -> Result<()> {
    let place = ctx.place(args.location.as_deref())?;
    let conn = ctx.connect()?;
    let (node, _) = content::node(&conn, &place.space, &place.at, &place.path).await?;
    let entries: Vec<(Vec<u8>, Node)> = if node.kind().is_dir() {
        let listing = conn.list_dir(&place.space, &place.at, node.file_id).await?;
        listing.entries.into_iter().map(|(name, node)| (name.as_bytes().to_vec(), node)).collect()
    } else {
        vec![(last_name(&place.path).to_vec(), node)]
    };
    let shapes: Vec<EntryShape> = entries.iter().map(|(name, node)| EntryShape::new(name, None, node)).collect();
    ctx.out.show(&shapes, |out| {
        if !args.long {
            return entries.iter().try_for_each(|(name, node)| out.line(&label(name, node)));
        }
        let mut table = Table::new(&["MODE", ">LINKS", ">UID", ">GID", ">SIZE", "MODIFIED", ">VERSION", "NAME"]);
        for (name, node) in &entries {
            table.row([
                mode_text(node),
                node.nlink().to_string(),
                node.attr.uid.to_string(),
                node.attr.gid.to_string(),
                node.size().to_string(),
                when::short(node.attr.mtime),
                node.version.0.to_string(),
                label(name, node),
            ]);
        }
        out.table(&table)
    })
}

/// A name with what it is: `dir/`, `link -> target`, `node_modules/ (shadow)`.
fn label(name: &[u8], node: &Node) -> String {
    let name = text(name);
    match &node.body {
        Body::Dir(dir) if dir.shadow => format!("{name}/ (shadow)"),
        Body::Dir(_) => format!("{name}/"),
        Body::Symlink(target) => format!("{name} -> {}", text(target)),
        Body::File(_) | Body::Special { .. } => name,
    }
}

/// The kind and permissions as `ls -l` writes them.
fn mode_text(node: &Node) -> String {
    let mut out = String::from(match node.kind() {
        NodeKind::File => "-",
        NodeKind::Dir => "d",
        NodeKind::Symlink => "l",
        NodeKind::Fifo => "p",
        NodeKind::Socket => "s",
        NodeKind::CharDevice => "c",
        NodeKind::BlockDevice => "b",
    });
    let mode = node.attr.mode;
    for (shift, special, set, unset) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')] {
        let bits = mode >> shift;
        out.push(if bits & 4 != 0 { 'r' } else { '-' });
        out.push(if bits & 2 != 0 { 'w' } else { '-' });
        out.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => set,
            (false, true) => unset,
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    out
}

/// Runs `agfs stat`.
pub async fn stat(ctx: &mut Context, args: &Stat) -> Result<()> {
    let place = ctx.place(Some(&args.location))?;
    let conn = ctx.connect()?;
    let (node, parent) = content::node(&conn, &place.space, &place.at, &place.path).await?;
    let mime = if args.mime { Some(guess(&conn, &place.path, &node).await?) } else { None };
    let shape = NodeShape::new(&node, &place.path, parent.map(|p| p.file_id), mime.clone());
    ctx.out.show(&shape, |out| {
        let mut table = Table::new(&["FIELD", "VALUE"]);
        table.row(["path".into(), text(&place.path)]);
        table.row(["node_type".into(), kind_word(node.kind()).into()]);
        if let Some(mime) = mime {
            table.row(["mime_type".into(), mime]);
        }
        table.row(["file_id".into(), node.file_id.0.to_string()]);
        table.row(["size".into(), format!("{} ({})", node.size(), size(node.size()))]);
        table.row(["mode".into(), format!("{} ({:o})", mode_text(&node), node.attr.mode)]);
        table.row(["owner".into(), format!("{}:{}", node.attr.uid, node.attr.gid)]);
        table.row(["links".into(), node.nlink().to_string()]);
        for (name, time) in [
            ("atime", node.attr.atime),
            ("mtime", node.attr.mtime),
            ("ctime", node.attr.ctime),
            ("btime", node.attr.btime),
        ] {
            table.row([name.into(), when::rfc3339(time)]);
        }
        table.row(["version".into(), node.version.0.to_string()]);
        table.row(["version_no".into(), node.version_no.to_string()]);
        if let Some(content) = node.content() {
            table.row(["object_hash".into(), content.hash.to_string()]);
            table.row(["allocated".into(), content.allocated.to_string()]);
        }
        if let Some(dir) = node.dir() {
            table.row(["entries".into(), dir.entries.to_string()]);
            table.row(["shadow_flag".into(), dir.shadow.to_string()]);
        }
        if let Body::Symlink(target) = &node.body {
            table.row(["target".into(), text(target)]);
        }
        for (name, value) in node.xattrs.iter().flat_map(|x| x.iter()) {
            table.row([format!("xattr {}", text(name)), text(value)]);
        }
        out.table(&table)
    })
}

/// The type of a node by its first bytes, else by its name, else by whether it is text.
async fn guess(conn: &Connection, path: &[u8], node: &Node) -> Result<String> {
    let Some(content) = node.content() else {
        return Ok(format!("inode/{}", if node.kind().is_dir() { "directory" } else { kind_word(node.kind()) }));
    };
    let mut left = SNIFF;
    let mut first: Vec<Extent> = Vec::new();
    for extent in conn.manifest_of(content).await?.extents() {
        let len = extent.len.min(left);
        if len == 0 {
            break;
        }
        first.push(Extent { len, ..*extent });
        left -= len;
    }
    let mut head = Vec::new();
    conn.read_manifest(&Manifest::new(first)?, &mut head).await?;
    Ok(mime_of(&head, last_name(path)))
}

fn mime_of(head: &[u8], name: &[u8]) -> String {
    if let Some(kind) = infer::get(head) {
        return kind.mime_type().to_owned();
    }
    if let Some(mime) = std::str::from_utf8(name).ok().and_then(|n| mime_guess::from_path(n).first_raw()) {
        return mime.to_owned();
    }
    // The last character may be cut off where the look at the file ends.
    let is_text = match std::str::from_utf8(head) {
        Ok(_) => !head.contains(&0),
        Err(error) => error.error_len().is_none() && !head.contains(&0),
    };
    if is_text { "text/plain" } else { "application/octet-stream" }.to_owned()
}

/// Runs `agfs tree`.
pub async fn tree(ctx: &mut Context, args: &Tree) -> Result<()> {
    let place = ctx.place(args.location.as_deref())?;
    let conn = ctx.connect()?;
    let (node, _) = content::node(&conn, &place.space, &place.at, &place.path).await?;
    let depth = args.depth.and_then(|d| usize::try_from(d).ok()).unwrap_or(usize::MAX);
    let json = ctx.json();
    let mut shapes = Vec::new();
    let (mut dirs, mut others) = (0, 0);
    if !json {
        ctx.out.line(&text(place.display().as_bytes()))?;
    }
    if node.kind().is_dir() && depth > 0 {
        let out = &mut ctx.out;
        content::walk(&conn, (&place.space, &place.at), &node, depth, |step| {
            if step.node.kind().is_dir() {
                dirs += 1
            } else {
                others += 1
            }
            if json {
                shapes.push(EntryShape::new(step.name.as_bytes(), Some(&step.path), &step.node));
                return Ok(());
            }
            out.line(&format!("{}{}", branches(&step.last), label(step.name.as_bytes(), &step.node)))
        })
        .await?;
    }
    if json {
        return ctx.out.json(&shapes);
    }
    ctx.out.line(&format!("\n{}, {}", count(dirs, "directory", "directories"), count(others, "file", "files")))
}

/// The lines that lead to an entry.
fn branches(last: &[bool]) -> String {
    let Some((own, above)) = last.split_last() else { return String::new() };
    let mut out: String = above.iter().map(|&last| if last { "    " } else { "│   " }).collect();
    out.push_str(if *own { "└── " } else { "├── " });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_guessed_from_bytes_then_name_then_text() {
        assert_eq!(mime_of(b"\x89PNG\r\n\x1a\n rest", b"a.txt"), "image/png");
        assert_eq!(mime_of(b"# title", b"doc.md"), "text/markdown");
        assert_eq!(mime_of("grü".as_bytes(), b"README"), "text/plain");
        assert_eq!(mime_of(&"grü".as_bytes()[..3], b"README"), "text/plain");
        assert_eq!(mime_of(b"\0\x01\xff", b"x"), "application/octet-stream");
    }

    #[test]
    fn branches_of_a_tree() {
        assert_eq!(branches(&[false]), "├── ");
        assert_eq!(branches(&[false, true, true]), "│       └── ");
    }
}
