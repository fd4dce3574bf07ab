//! What goes wrong says so: one clear message, the right exit code, within bounded time, and nothing else is harmed.

use crate::common::Farm;
use crate::common::process::is_mounted;
use std::fs;
use std::time::Duration;

/// How long an answer may take when there is nobody to ask.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn exit_codes_say_what_kind_of_failure_it_was() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mountpoint();
    let m = m.to_str().unwrap();
    for (args, code) in [
        (vec!["space", "show", "nosuch"], 5),
        (vec!["rollback", "nosuch", "x"], 5),
        (vec!["rollback", &space, "nosuch"], 5),
        (vec!["checkpoint", "show", &space, "nosuch"], 5),
        (vec!["diff", &space, "nosuch"], 5),
        (vec!["cat", &format!("{space}:/none")], 5),
        (vec!["cat", &format!("{space}@nosuch:/none")], 5),
        (vec!["ls", &format!("{space}@seq:999999999:/")], 5),
        (vec!["mount", "nosuch", m], 5),
        (vec!["mount", &format!("{space}@nosuch"), m], 5),
        (vec!["mount", &format!("{space}:/nosuch"), m], 5),
        (vec!["nonsense"], 2),
        (vec!["space", "create"], 2),
        (vec!["mount", &space, m, "--consistency", "perhaps"], 2),
    ] {
        farm.fails(&args, code);
    }
    assert!(!is_mounted(std::path::Path::new(m)));
    assert_ne!(farm.cli_any(["space", "create", &space]).code(), 0, "a name that is taken");
    farm.fails(["undo", &space], 5);
}

#[test]
fn errors_are_json_when_asked() {
    let mut farm = Farm::new();
    let space = farm.space();
    for (args, code) in [
        (["cat".to_owned(), format!("{space}:/none")], "not_found"),
        (["ls".to_owned(), format!("{space}@seq:x:/")], "invalid_argument"),
    ] {
        let done = farm.cli_any(args.iter().map(String::as_str).chain(["--json"]));
        assert_ne!(done.code(), 0);
        let value: serde_json::Value =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.out()));
        assert_eq!(value["error"]["code"], code, "{value}");
        assert!(value["error"]["message"].as_str().unwrap().len() > 10, "{value}");
    }
}

#[test]
fn bad_names_are_refused() {
    let farm = Farm::new();
    let long = "n".repeat(256);
    for name in ["", ".", "..", "a/b", "a:b", "a@b", "new\nline", long.as_str()] {
        let done = farm.cli_any(["space", "create", name]);
        assert!([1, 2].contains(&done.code()) && !done.err().contains("panicked"), "{name:?}: {}", done.tail());
    }
    farm.cli(["space", "create", "good"]);
    let path = format!("good:/{}", "d/".repeat(2_100));
    for (verb, at) in [("mkdir", format!("good:/{long}")), ("mkdir", path), ("put", "good:/a/../b".to_owned())] {
        let done = farm.cli_any([verb, &at]);
        assert!(![0, 101].contains(&done.code()), "{verb} {at:.40}: {}", done.tail());
        assert!(!done.err().contains("panicked"), "{}", done.err());
    }
    assert_eq!(farm.json(&["ls", "good:/"]), serde_json::json!([]));
}

#[test]
fn without_a_server_it_says_so_soon() {
    let mut farm = Farm::without_server();
    let m = farm.mountpoint();
    for args in [vec!["space", "list"], vec!["mount", "s", m.to_str().unwrap()], vec!["cat", "s:/f"], vec!["mounts"]] {
        let done = farm.fails(&args, 1);
        assert!(done.took < PATIENCE, "agfs {args:?} took {:?}", done.took);
        assert_eq!(done.err().trim().lines().count(), 1, "agfs {args:?}: one line, not: {}", done.err());
        assert!(done.err().contains("127.0.0.1"), "agfs {args:?} does not name the server: {}", done.err());
    }
    assert!(!is_mounted(&m));
}

#[test]
fn mountpoints_that_cannot_be_are_explained() {
    let mut farm = Farm::new();
    let space = farm.space();
    fs::write(farm.path("file"), "kept").unwrap();
    let refused = |farm: &Farm, dir: &std::path::Path| {
        let done = farm.cli_any(["mount", &space, dir.to_str().unwrap()]);
        assert!([1, 4].contains(&done.code()), "{}: exit {}\n{}", dir.display(), done.code(), done.tail());
        let err = done.err();
        assert!(err.contains(dir.to_str().unwrap()) && !err.contains("panicked"), "{err}");
        assert!(done.took < PATIENCE);
    };
    refused(&farm, &farm.path("file"));
    assert_eq!(fs::read_to_string(farm.path("file")).unwrap(), "kept");

    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "x").unwrap();
    refused(&farm, &m);
    assert_eq!(fs::read_to_string(m.join("f")).unwrap(), "x", "the first mount goes on");
    assert_eq!(farm.json(&["mounts"]).as_array().unwrap().len(), 1);
    farm.umount(&m);
    assert!(!is_mounted(&m));
    let done = farm.cli_any(["umount", m.to_str().unwrap()]);
    assert!(![0, 101].contains(&done.code()), "a second umount: {}", done.tail());
}

#[test]
fn a_configuration_with_an_unknown_key_is_refused() {
    let farm = Farm::without_server();
    fs::create_dir_all(farm.path("xdg/config/agfs")).unwrap();
    fs::write(farm.path("xdg/config/agfs/config.toml"), "no_such_key = 1\n").unwrap();
    let done = farm.cli_any(["space", "list"]);
    assert!([1, 2].contains(&done.code()), "{}", done.tail());
    assert!(done.err().contains("no_such_key"), "{}", done.err());
}

#[test]
fn a_busy_mount_is_not_torn_away() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let open = fs::File::create(m.join("f")).unwrap();
    let done = farm.cli_any(["umount", m.to_str().unwrap(), "--timeout", "2"]);
    assert!([4, 124].contains(&done.code()), "exit {}: {}", done.code(), done.tail());
    assert!(is_mounted(&m) && open.metadata().is_ok());
    drop(open);
    farm.umount(&m);
}

#[test]
fn garbage_on_the_port_harms_nothing() {
    use std::io::{Read, Write};
    let mut farm = Farm::new();
    let space = farm.space();
    let address = farm.address();
    let mut random = crate::common::tree::Random::new(2);
    for i in 0..20 {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let head: &[u8] = if i % 2 == 0 { b"" } else { b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" };
        let _ = stream.write_all(&[head, &random.bytes(5_000)].concat());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0; 4096]);
    }
    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "x").unwrap();
    assert_eq!(farm.cli(["cat", &format!("{space}:/f")]).out(), "x");
}
