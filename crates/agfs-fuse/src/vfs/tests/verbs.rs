//! Single calls: their results, and the errors that programs get.

use crate::testing::{FakeServer, ROOT, TestMount, USER, mount};
use crate::vfs::SetAttr;
use agfs_core::node::NodeKind;
use agfs_core::{ErrorKind, Timestamp};
use libc::{O_EXCL, O_RDONLY, O_RDWR, O_WRONLY};

const TOP: u64 = 1;

#[tokio::test]
async fn names_that_no_file_can_have_are_refused() {
    let server = FakeServer::new();
    let m = mount(&server);
    let long = [b'x'; 256];
    assert_eq!(m.vfs.lookup(TOP, &long).await.unwrap_err().kind(), ErrorKind::NameTooLong);
    assert_eq!(m.vfs.mkdir(TOP, &long, 0o755, ROOT).await.unwrap_err().kind(), ErrorKind::NameTooLong);
    assert!(m.vfs.mkdir(TOP, &long[1..], 0o755, ROOT).await.is_ok());
    for bad in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
        assert_eq!(m.vfs.mkdir(TOP, bad, 0o755, ROOT).await.unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad:?}");
    }
    let odd = b"\xff\xfe \n";
    let ino = m.vfs.mkdir(TOP, odd, 0o755, ROOT).await.unwrap().stat.ino;
    assert_eq!(m.vfs.lookup(TOP, odd).await.unwrap().stat.ino, ino);
}

#[tokio::test]
async fn special_files_keep_their_kind_and_device() {
    let server = FakeServer::new();
    let m = mount(&server);
    for (name, mode, kind, rdev) in [
        ("fifo", libc::S_IFIFO, NodeKind::Fifo, 0),
        ("sock", libc::S_IFSOCK, NodeKind::Socket, 0),
        ("null", libc::S_IFCHR, NodeKind::CharDevice, 0x103),
        ("disk", libc::S_IFBLK, NodeKind::BlockDevice, 0x800),
        ("file", libc::S_IFREG, NodeKind::File, 0),
    ] {
        let stat = m.vfs.mknod(TOP, name.as_bytes(), mode | 0o640, rdev, USER).await.unwrap().stat;
        assert_eq!((stat.kind, stat.rdev, stat.mode, stat.uid, stat.gid), (kind, rdev, 0o640, 1_000, 1_000));
    }
    assert_eq!(m.vfs.mknod(TOP, b"d", libc::S_IFDIR, 0, ROOT).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let fifo = m.ino(TOP, "fifo").await.unwrap();
    let set = SetAttr { size: Some(1), ..SetAttr::default() };
    assert_eq!(m.vfs.setattr(fifo, None, set, ROOT).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(m.vfs.setattr(TOP, None, set, ROOT).await.unwrap_err().kind(), ErrorKind::IsADirectory);
}

#[tokio::test]
async fn a_create_that_lost_the_race_sends_the_kernel_to_open_what_is_there() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"first").await;
    let lost = |flags| m.vfs.create(TOP, b"f", 0o644, flags, ROOT);
    assert_eq!(lost(O_WRONLY).await.unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(lost(O_WRONLY | O_EXCL).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!((m.ino(TOP, "f").await.unwrap(), m.content(ino).await), (ino, b"first".to_vec()));
}

#[tokio::test]
async fn links_share_everything_and_the_last_one_ends_the_file() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "a", b"x").await;
    assert_eq!(m.vfs.link(ino, TOP, b"b").await.unwrap().stat.nlink, 2);
    assert_eq!(m.vfs.link(ino, TOP, b"b").await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(m.vfs.link(TOP, TOP, b"c").await.unwrap_err().kind(), ErrorKind::NotPermitted);
    m.vfs.unlink(TOP, b"a").await.unwrap();
    assert_eq!(m.vfs.getattr(ino).await.unwrap().stat.nlink, 1);
    let fh = m.open(ino, O_RDWR).await;
    m.vfs.unlink(TOP, b"b").await.unwrap();
    m.vfs.write(fh, 1, b"yz", false).await.unwrap();
    let stat = m.vfs.getattr(ino).await.unwrap().stat;
    assert_eq!((stat.nlink, stat.size), (0, 3));
    let set = SetAttr { mode: Some(0o600), mtime: Some(Some(Timestamp(9))), ..SetAttr::default() };
    let stat = m.vfs.setattr(ino, Some(fh), set, ROOT).await.unwrap().stat;
    assert_eq!((stat.mode, stat.mtime, stat.nlink), (0o600, Timestamp(9), 0), "fchmod of a file without a name");
    let set = SetAttr { size: Some(1), ..SetAttr::default() };
    assert_eq!(m.vfs.setattr(ino, Some(fh), set, ROOT).await.unwrap().stat.size, 1);
    assert_eq!(m.vfs.link(ino, TOP, b"c").await.unwrap_err().kind(), ErrorKind::NotFound);
    m.close(fh).await;
}

async fn attr(m: &TestMount, ino: u64, name: &[u8]) -> Result<Vec<u8>, ErrorKind> {
    m.vfs.getxattr(ino, name).await.map_err(|e| e.kind())
}

#[tokio::test]
async fn extended_attributes() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(TOP, "f", b"x").await;
    let set = |name: &'static [u8], value: &'static [u8], flags| m.vfs.setxattr(ino, name, value, flags);
    assert_eq!(attr(&m, ino, b"user.a").await, Err(ErrorKind::NoAttribute));
    set(b"user.a", b"1", libc::XATTR_CREATE).await.unwrap();
    assert_eq!(set(b"user.a", b"2", libc::XATTR_CREATE).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(set(b"user.b", b"2", libc::XATTR_REPLACE).await.unwrap_err().kind(), ErrorKind::NoAttribute);
    set(b"user.b", b"", 0).await.unwrap();
    assert_eq!(attr(&m, ino, b"user.a").await, Ok(b"1".to_vec()));
    assert_eq!(m.vfs.listxattr(ino, ROOT).await.unwrap(), b"user.a\0user.b\0");
    assert_eq!(m.vfs.setxattr(ino, b"user.", b"1", 0).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    m.vfs.setxattr(ino, b"trusted.c", b"3", 0).await.unwrap();
    assert_eq!(m.vfs.listxattr(ino, ROOT).await.unwrap(), b"trusted.c\0user.a\0user.b\0");
    assert_eq!(m.vfs.listxattr(ino, USER).await.unwrap(), b"user.a\0user.b\0", "trusted is for root");
    assert_eq!(mount(&server).vfs.getxattr(ino, b"user.b").await.unwrap(), b"");
    m.vfs.removexattr(ino, b"user.a").await.unwrap();
    assert_eq!(m.vfs.removexattr(ino, b"user.a").await.unwrap_err().kind(), ErrorKind::NoAttribute);
    assert_eq!(attr(&m, ino, b"system.posix_acl_access").await, Err(ErrorKind::Unsupported));
}

#[tokio::test]
async fn a_listing_is_a_snapshot_with_offsets_that_stay_good() {
    let server = FakeServer::new();
    let m = mount(&server);
    for i in 0..50 {
        m.put(TOP, &format!("f{i:02}"), b"").await;
    }
    let fh = m.vfs.opendir(TOP).await.unwrap();
    let (mut names, mut offset) = (Vec::new(), 0);
    loop {
        let mut room = 7;
        let before = names.len();
        m.vfs
            .readdir(fh, offset, true, &mut |item| {
                if room == 0 {
                    return false;
                }
                room -= 1;
                assert_eq!(item.entry.is_none(), item.name == b"." || item.name == b"..");
                names.push(String::from_utf8(item.name.to_vec()).unwrap());
                offset = item.next;
                true
            })
            .await
            .unwrap();
        if names.len() == before {
            break;
        }
        // Entries come and go while somebody reads.
        if let Some(last) = names.last().filter(|n| n.starts_with('f')) {
            m.vfs.unlink(TOP, last.as_bytes()).await.unwrap();
            m.put(TOP, &format!("{last}-new"), b"").await;
        }
    }
    let mut want = vec![".".to_owned(), "..".to_owned()];
    want.extend((0..50).map(|i| format!("f{i:02}")));
    assert_eq!(names, want, "each once, none missing, none new");
    // Read again from the start, it is a new one.
    let mut again = 0;
    m.vfs
        .readdir(fh, 0, false, &mut |item| {
            again += usize::from(item.name.ends_with(b"-new"));
            true
        })
        .await
        .unwrap();
    assert!(again > 5);
    m.vfs.releasedir(fh).unwrap();
}

#[tokio::test]
async fn ranges_are_copied_within_and_between_files() {
    let server = FakeServer::new();
    let m = mount(&server);
    let (a, b) = (m.put(TOP, "a", b"0123456789").await, m.put(TOP, "b", b"").await);
    let (fa, fb) = (m.open(a, O_RDONLY).await, m.open(b, O_RDWR).await);
    assert_eq!(m.vfs.copy_file_range((fa, 5), (fb, 2), 100, false).await.unwrap(), 5, "up to the end of the source");
    assert_eq!(m.vfs.copy_file_range((fa, 50), (fb, 0), 100, false).await.unwrap(), 0);
    m.close(fb).await;
    assert_eq!(mount(&server).content(b).await, b"\x00\x0056789");
}

#[tokio::test]
async fn what_fallocate_does_not_offer_is_said_so() {
    let server = FakeServer::new();
    let m = mount(&server);
    let f = m.put(TOP, "f", b"0123456789").await;
    let fh = m.open(f, O_RDWR).await;
    for mode in [libc::FALLOC_FL_COLLAPSE_RANGE, libc::FALLOC_FL_INSERT_RANGE, libc::FALLOC_FL_PUNCH_HOLE] {
        assert_eq!(m.vfs.fallocate(fh, 0, 4_096, mode, false).await.unwrap_err().kind(), ErrorKind::Unsupported);
    }
    assert_eq!(m.vfs.fallocate(fh, u64::MAX, 5, 0, false).await.unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(m.vfs.write(fh, i64::MAX as u64, b"xx", false).await.unwrap_err().kind(), ErrorKind::FileTooLarge);
    m.close(fh).await;
    assert_eq!(server.version_no(f), 1);
}

#[tokio::test]
async fn flags_of_rename_that_are_not_offered_are_invalid() {
    let server = FakeServer::new();
    let m = mount(&server);
    m.put(TOP, "f", b"").await;
    for flags in [libc::RENAME_WHITEOUT, libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE, 1 << 20] {
        let e = m.vfs.rename((TOP, b"f"), (TOP, b"g"), flags).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    }
}

#[tokio::test]
async fn a_new_file_in_a_set_group_id_directory_has_its_group() {
    let server = FakeServer::new();
    let m = mount(&server);
    let dir = m.vfs.mkdir(TOP, b"d", 0o2775, crate::vfs::Caller { uid: 5, gid: 77 }).await.unwrap().stat.ino;
    let stat = m.vfs.mknod(dir, b"f", 0o644, 0, USER).await.unwrap().stat;
    assert_eq!((stat.uid, stat.gid), (1_000, 77));
    let sub = m.vfs.mkdir(dir, b"s", 0o755, USER).await.unwrap().stat;
    assert_eq!((sub.gid, sub.mode), (77, 0o2755));
    assert_eq!(m.vfs.getattr(dir).await.unwrap().stat.nlink, 3);
}

#[tokio::test]
async fn the_room_is_that_of_the_server_and_stays_as_it_was_while_it_is_away() {
    let server = FakeServer::new();
    let m = mount(&server);
    let s = m.vfs.statfs(1).await.unwrap();
    assert_eq!((s.blocks * u64::from(s.block), s.free * u64::from(s.block)), (1 << 40, 1 << 39));
    assert_eq!(s.free, s.available);
    assert!(s.files_free < s.files);
    m.vfs.world().stream.set(false);
    assert_eq!(m.vfs.statfs(1).await.unwrap(), s);
}

#[tokio::test]
async fn a_page_of_a_mapping_goes_to_its_place_through_a_handle_that_appends() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"0123456789").await;
    let fh = m.open(ino, O_RDWR | libc::O_APPEND).await;
    m.vfs.write_page(fh, 2, b"xy").await.unwrap();
    m.vfs.write(fh, 0, b"end", false).await.unwrap();
    m.close(fh).await;
    assert_eq!(m.content(ino).await, b"01xy456789end");
}

#[tokio::test]
async fn a_file_opened_for_reading_is_cut_too_and_that_is_committed() {
    let server = FakeServer::new();
    let (m, other) = (mount(&server), mount(&server));
    let ino = m.put(1, "f", b"0123456789").await;
    let opened = m.vfs.open(ino, O_RDONLY | libc::O_TRUNC, ROOT).await.unwrap();
    assert!(!opened.no_flush);
    m.close(opened.fh).await;
    assert!(other.content(ino).await.is_empty());
    // One that is empty already is touched.
    let before = m.vfs.getattr(ino).await.unwrap().stat;
    let fh = m.open(ino, O_WRONLY | libc::O_TRUNC).await;
    m.close(fh).await;
    let after = other.vfs.getattr(ino).await.unwrap().stat;
    assert!(after.mtime > before.mtime && after.ctime > before.ctime);
}

#[tokio::test]
async fn a_listing_from_the_start_shows_the_present() {
    let server = FakeServer::new();
    let m = mount(&server);
    let fh = m.vfs.opendir(1).await.unwrap();
    for i in 0..3 {
        m.put(1, &format!("f{i}"), b"").await;
        let mut names = 0;
        m.vfs
            .readdir(fh, 0, false, &mut |_| {
                names += 1;
                true
            })
            .await
            .unwrap();
        assert_eq!(names, 2 + i + 1);
    }
    m.vfs.releasedir(fh).unwrap();
}

#[tokio::test]
async fn setting_nothing_is_a_change_of_owner_to_the_same() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"x").await;
    m.vfs.setattr(ino, None, SetAttr { mode: Some(0o6755), ..SetAttr::default() }, ROOT).await.unwrap();
    let before = m.vfs.getattr(ino).await.unwrap().stat;
    let after = m.vfs.setattr(ino, None, SetAttr::default(), ROOT).await.unwrap().stat;
    assert_eq!((after.mode, after.uid, after.mtime), (0o755, before.uid, before.mtime));
    assert!(after.ctime > before.ctime);
}

#[tokio::test]
async fn a_descriptor_appends_as_long_as_its_flags_say_so() {
    let server = FakeServer::new();
    let m = mount(&server);
    let ino = m.put(1, "f", b"0123456789").await;
    let fh = m.open(ino, O_RDWR | libc::O_APPEND).await;
    m.vfs.set_flags(fh, O_RDWR);
    m.vfs.write(fh, 0, b"AB", false).await.unwrap();
    m.vfs.set_flags(fh, O_RDWR | libc::O_APPEND);
    m.vfs.write(fh, 0, b"CD", false).await.unwrap();
    m.close(fh).await;
    assert_eq!(m.content(ino).await, b"AB23456789CD");
}

#[tokio::test]
async fn a_number_that_was_forgotten_leads_to_its_file_again() {
    let server = FakeServer::new();
    let m = mount(&server);
    let dir = m.vfs.mkdir(1, b"d", 0o755, ROOT).await.unwrap().stat.ino;
    let ino = m.put(dir, "f", b"x").await;
    m.vfs.forget(ino, 1);
    m.vfs.forget(dir, 1);
    let fresh = mount(&server);
    for m in [&m, &fresh] {
        let found = m.vfs.lookup(ino, b".").await.unwrap().stat;
        assert_eq!((found.ino, found.size), (ino, 1));
        assert_eq!(m.vfs.lookup(ino, b"..").await.unwrap().stat.ino, dir);
        assert_eq!(m.vfs.lookup(dir, b"..").await.unwrap().stat.ino, 1);
        assert_eq!(m.vfs.lookup(1, b"..").await.unwrap().stat.ino, 1);
    }
    m.vfs.unlink(dir, b"f").await.unwrap();
    assert_eq!(fresh.vfs.lookup(ino + 1000, b".").await.unwrap_err().kind(), ErrorKind::Stale);
}
