//! What a mount asks the server for: counted there, by call.

use crate::common::Farm;
use crate::common::tree::fill;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

/// How often each call was made since the server started, but for the signs of life of the stream and this question.
fn requests(farm: &Farm) -> BTreeMap<String, u64> {
    let address = farm.address();
    let mut tcp = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    write!(tcp, "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let stats: serde_json::Value = serde_json::from_str(body).unwrap();
    let counts = stats["requests"].as_object().unwrap().iter();
    counts.filter(|(path, _)| *path != "/v1/stats").map(|(path, n)| (path.clone(), n.as_u64().unwrap())).collect()
}

#[test]
fn what_is_cached_is_listed_and_looked_at_without_a_request() {
    let mut farm = Farm::new();
    let space = farm.space();
    let writer = farm.mount(&space, &[]);
    fill(&writer, 100);
    farm.umount(&writer);
    let m = farm.mount(&space, &[]);
    let look = |farm: &Farm| {
        farm.sh(
            &m,
            "ls -lR . > /dev/null; find . -type f -exec stat -c %s {} + > /dev/null; ! stat nothere 2>/dev/null",
        );
        fs::metadata(m.join("d1/e1/f1.txt")).unwrap();
        assert!(!m.join("d1/absent").exists());
    };
    let before = requests(&farm);
    look(&farm);
    let first = requests(&farm);
    assert_ne!(before, first, "the first look has to ask");
    for _ in 0..3 {
        look(&farm);
    }
    assert_eq!(requests(&farm), first, "the second look must not ask");
    // The content is asked for once.
    let read = || fs::read(m.join("d1/e1/f66.txt")).unwrap();
    let content = read();
    let after = requests(&farm);
    assert_eq!(read(), content);
    assert_eq!(requests(&farm), after);
}

#[test]
fn a_save_is_one_version_and_few_calls() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "1").unwrap();
    let applies = |farm: &Farm| requests(farm).get("/agfs.v1.Tree/Apply").copied().unwrap_or(0);
    let before = applies(&farm);
    fs::write(m.join("f"), "two").unwrap();
    assert_eq!(applies(&farm) - before, 1, "open with O_TRUNC, write and close");
    fs::read(m.join("f")).unwrap();
    fs::File::options().append(true).open(m.join("f")).unwrap();
    assert_eq!(applies(&farm) - before, 1, "opening and closing changes nothing");
    assert_eq!(farm.json(&["log", &space, "/f"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_space_that_is_mounted_is_not_deleted() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "1").unwrap();
    let refused = farm.fails(["space", "delete", &space, "-y"], 6);
    assert!(refused.err().contains(m.to_str().unwrap()), "{}", refused.err());
    fs::write(m.join("f"), "2").unwrap();
    farm.umount(&m);
    farm.cli(["space", "delete", &space, "-y"]);
    farm.fails(["space", "show", &space], 5);
}
