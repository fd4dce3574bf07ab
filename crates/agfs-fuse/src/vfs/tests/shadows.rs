//! Shadow directories: what makes one, that nothing below it reaches the server, and its border.

use crate::shadow::is_shadow;
use crate::testing::{FakeServer, ROOT, mount, mount_with};
use agfs_core::ErrorKind;
use libc::O_WRONLY;

const TOP: u64 = 1;

#[tokio::test]
async fn nothing_below_a_shadow_reaches_the_server() {
    let server = FakeServer::new();
    let (m, other) = (mount(&server), mount(&server));
    let dir = m.vfs.mkdir(TOP, b"node_modules", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(server.node(dir).unwrap().is_shadow() && !is_shadow(dir));
    let log = server.log().len();
    let inner = m.vfs.mkdir(dir, b"pkg", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(is_shadow(inner));
    let f = m.put(inner, "index.js", b"module").await;
    m.vfs.symlink(dir, b".bin", b"pkg", ROOT).await.unwrap();
    assert_eq!(m.content(f).await, b"module");
    assert_eq!(
        (m.names(dir).await, m.names(inner).await),
        (vec![".bin".into(), "pkg".into()], vec!["index.js".into()])
    );
    assert_eq!(server.log().len(), log);
    assert_eq!(other.names(dir).await, [""; 0], "another mount has its own, which is empty");
    other.put(dir, "own", b"x").await;
    assert_eq!(server.log().len(), log);
    assert_eq!(m.vfs.rmdir(TOP, b"node_modules").await.unwrap_err().kind(), ErrorKind::NotEmpty);
    m.vfs.unlink(inner, b"index.js").await.unwrap();
    m.vfs.rmdir(dir, b"pkg").await.unwrap();
    m.vfs.unlink(dir, b".bin").await.unwrap();
    m.vfs.rmdir(TOP, b"node_modules").await.unwrap();
    assert!(server.node(dir).is_none());
}

#[tokio::test]
async fn nothing_moves_across_the_border() {
    let server = FakeServer::new();
    let m = mount(&server);
    let dir = m.vfs.mkdir(TOP, b".venv", 0o755, ROOT).await.unwrap().stat.ino;
    let (out, inner) = (m.put(TOP, "f", b"x").await, m.put(dir, "g", b"y").await);
    for (from, to) in [((TOP, &b"f"[..]), (dir, &b"f"[..])), ((dir, b"g"), (TOP, b"g"))] {
        assert_eq!(m.vfs.rename(from, to, 0).await.unwrap_err().kind(), ErrorKind::CrossDevice);
    }
    assert_eq!(m.vfs.link(out, dir, b"l").await.unwrap_err().kind(), ErrorKind::CrossDevice);
    assert_eq!(m.vfs.link(inner, TOP, b"l").await.unwrap_err().kind(), ErrorKind::CrossDevice);
    // The directory itself is a node like others.
    m.vfs.rename((TOP, b".venv"), (TOP, b"env"), 0).await.unwrap();
    assert_eq!(m.names(dir).await, ["g"]);
}

#[tokio::test]
async fn rules_look_at_siblings_and_at_the_path() {
    let server = FakeServer::new();
    let m = mount(&server);
    let target = m.vfs.mkdir(TOP, b"target", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(!server.node(target).unwrap().is_shadow(), "no Cargo.toml beside it");
    let proj = m.vfs.mkdir(TOP, b"proj", 0o755, ROOT).await.unwrap().stat.ino;
    m.put(proj, "Gemfile", b"").await;
    m.put(proj, "Cargo.toml", b"").await;
    // Another mount that has loaded nothing decides the same.
    let other = mount(&server);
    let target = other.vfs.mkdir(proj, b"target", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(server.node(target).unwrap().is_shadow());
    let vendor = other.vfs.mkdir(proj, b"vendor", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(!server.node(vendor).unwrap().is_shadow());
    let bundle = mount(&server).vfs.mkdir(vendor, b"bundle", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(server.node(bundle).unwrap().is_shadow());
    let none = mount_with(&server, &["none"]);
    let plain = none.vfs.mkdir(TOP, b"node_modules", 0o755, ROOT).await.unwrap().stat.ino;
    assert!(!server.node(plain).unwrap().is_shadow());
}

#[tokio::test]
async fn a_rollback_leaves_what_lies_in_a_shadow() {
    let server = FakeServer::new();
    let m = mount(&server);
    let dir = m.vfs.mkdir(TOP, b"node_modules", 0o755, ROOT).await.unwrap().stat.ino;
    m.put(dir, "f", b"x").await;
    let point = server.checkpoint();
    m.put(TOP, "later", b"y").await;
    server.rollback(point);
    assert_eq!(m.names(TOP).await, ["node_modules"]);
    assert_eq!(m.names(dir).await, ["f"]);
    let (_, opened) = m.vfs.create(dir, b"g", 0o644, O_WRONLY, ROOT).await.unwrap();
    m.close(opened.fh).await;
}
