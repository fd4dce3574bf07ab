//! Who gets a space, who has to wait, and what becomes of a mount that does not answer.

use super::Lease;
use crate::hub::{Hub, Listener, Message};
use agfs_core::error::{ErrorKind, Result};
use agfs_core::id::{FileId, MountId, Seq, SpaceId, TimelineId};
use agfs_core::op::Author;
use agfs_core::space::{Consistency, Mount, Point};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

struct Space {
    lease: Arc<Lease>,
    hub: Hub,
}

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);
/// Time for other tasks to go on as far as they can.
const MOMENT: Duration = Duration::from_millis(20);

impl Space {
    fn new() -> Space {
        Space::with(LONG, Duration::ZERO)
    }

    /// How long a holder may be silent, and how long after a change by another nobody gets the space.
    fn with(patience: Duration, quiet: Duration) -> Space {
        let head = Point { timeline: TimelineId(1), seq: Seq(1) };
        let lease = Lease { patience, quiet, ..Lease::default() };
        Space { lease: Arc::new(lease), hub: Hub::new(head) }
    }

    fn mount(&self, id: u64, lease: bool, read_only: bool) -> (Arc<Listener>, Receiver<Message>) {
        let mount = Mount {
            id: MountId(id),
            space: SpaceId(1),
            root_file_id: FileId::ROOT,
            mount_path: "/m".into(),
            tenant_code: String::new(),
            user_id: String::new(),
            conversation_id: String::new(),
            author: Author::default(),
            host: String::new(),
            consistency: Consistency::Cto,
            read_only,
            seen: Seq(1),
        };
        self.hub.attach(mount, lease)
    }

    fn offer(&self) -> Option<MountId> {
        self.lease.offer(&self.hub, || Ok(7)).unwrap();
        self.lease.holder()
    }

    /// Whether a change by nobody in particular may be made within this time.
    async fn excludes_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.lease.exclude(MountId(0))).await.is_ok()
    }
}

fn told(messages: &mut Receiver<Message>) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(message) = messages.try_recv() {
        all.push(match message {
            Message::Grant { epoch } => format!("grant {epoch}"),
            Message::Recall { release: true, .. } => "release".to_owned(),
            Message::Recall { token, .. } => format!("drain {token}"),
            other => format!("{other:?}"),
        });
    }
    all
}

fn refused(result: Result<()>) -> bool {
    result.is_err_and(|e| e.kind() == ErrorKind::Conflict)
}

#[tokio::test]
async fn the_only_mount_that_can_have_it_gets_it() {
    let space = Space::new();
    assert_eq!(space.offer(), None, "nobody is there");
    let (unable, _m) = space.mount(1, false, false);
    assert_eq!(space.offer(), None);
    space.hub.detach(&unable);
    let (reader, _m) = space.mount(2, true, true);
    assert_eq!(space.offer(), None);
    space.hub.detach(&reader);
    let (_first, mut messages) = space.mount(3, true, false);
    let (second, _m) = space.mount(4, true, false);
    assert_eq!(space.offer(), None, "two are there");
    space.hub.detach(&second);
    assert_eq!(space.offer(), Some(MountId(3)));
    assert_eq!(space.offer(), Some(MountId(3)));
    assert_eq!(told(&mut messages), ["grant 7"], "once");
    assert!(space.lease.check(MountId(3), 7).is_ok());
    assert!(refused(space.lease.check(MountId(3), 6)) && refused(space.lease.check(MountId(4), 7)));
}

#[tokio::test]
async fn a_change_by_another_waits_until_the_space_is_given_back() {
    let space = Space::with(LONG, LONG);
    let (_mount, mut messages) = space.mount(3, true, false);
    space.offer();
    let lease = space.lease.clone();
    let changes: Vec<_> = (0..2)
        .map(|_| {
            let lease = lease.clone();
            tokio::spawn(async move { lease.exclude(MountId(0)).await })
        })
        .collect();
    tokio::time::sleep(MOMENT).await;
    assert_eq!(told(&mut messages), ["grant 7", "release"], "asked once, whoever asks");
    assert!(changes.iter().all(|c| !c.is_finished()));
    assert!(space.lease.check(MountId(3), 7).is_ok(), "it may still send");
    space.lease.drained(MountId(3), 6, 0, true);
    space.lease.drained(MountId(4), 7, 0, true);
    tokio::task::yield_now().await;
    assert!(changes.iter().all(|c| !c.is_finished()), "an answer of another grant, or of another mount");
    space.lease.drained(MountId(3), 7, 0, true);
    let mut guards = Vec::new();
    for change in changes {
        guards.push(change.await.unwrap());
    }
    space.lease.state.lock().quiet = None;
    assert_eq!(space.offer(), None, "while a change is under way");
    drop(guards);
    assert_eq!(space.offer(), None, "right after it");
    space.lease.state.lock().quiet = Some(Instant::now());
    assert_eq!(space.offer(), Some(MountId(3)), "when it is quiet");
    let own = space.lease.exclude(MountId(3)).await;
    assert_eq!(told(&mut messages), ["grant 7"], "its own calls do not take it away");
    drop(own);
}

#[tokio::test]
async fn one_that_does_not_answer_is_fenced_when_its_lease_ends() {
    let space = Space::with(MOMENT, Duration::ZERO);
    let (mount, _messages) = space.mount(3, true, false);
    space.offer();
    let began = Instant::now();
    drop(space.lease.exclude(MountId(0)).await);
    assert!(began.elapsed() >= MOMENT);
    assert!(refused(space.lease.check(MountId(3), 7)));
    tokio::time::timeout(LONG, mount.cut()).await.expect("its stream ends");
}

#[tokio::test]
async fn a_look_waits_for_what_was_made_until_then_and_takes_nothing_away() {
    let space = Space::new();
    space.lease.drain(MountId(0)).await;
    let (_mount, mut messages) = space.mount(3, true, false);
    space.offer();
    space.lease.drain(MountId(3)).await;
    assert_eq!(told(&mut messages), ["grant 7"], "its own looks wait for nothing");
    let look = || {
        let lease = space.lease.clone();
        tokio::spawn(async move { lease.drain(MountId(0)).await })
    };
    let (first, second) = (look(), look());
    tokio::task::yield_now().await;
    assert_eq!(told(&mut messages), ["drain 1", "drain 2"]);
    space.lease.drained(MountId(3), 7, 1, false);
    first.await.unwrap();
    tokio::task::yield_now().await;
    assert!(!second.is_finished(), "it may have been asked after that");
    space.lease.drained(MountId(3), 7, 2, false);
    second.await.unwrap();
    assert_eq!(space.lease.holder(), Some(MountId(3)));
    let third = look();
    tokio::task::yield_now().await;
    space.lease.drained(MountId(3), 7, 0, true);
    third.await.unwrap();
}

#[tokio::test]
async fn a_broken_stream_keeps_the_space_for_a_lease_and_a_clean_end_does_not() {
    let space = Space::new();
    let (mount, messages) = space.mount(3, true, false);
    space.offer();
    space.lease.lost(&mount, false);
    space.hub.detach(&mount);
    drop(messages);
    assert!(!space.excludes_within(MOMENT).await, "it may come back");
    let (again, mut messages) = space.mount(3, true, false);
    assert_eq!(space.lease.back(&again), Some(7));
    assert_eq!(told(&mut messages), ["release"], "what was asked while it was away is asked again");
    space.lease.lost(&mount, true);
    assert_eq!(space.lease.holder(), Some(MountId(3)), "the end of the old stream comes late");
    space.lease.lost(&again, true);
    assert!(space.excludes_within(LONG).await);
    assert_eq!(space.lease.back(&again), None);
}

#[tokio::test]
async fn one_that_does_not_come_back_is_fenced_when_somebody_asks() {
    let space = Space::with(MOMENT, Duration::ZERO);
    let (mount, _messages) = space.mount(3, true, false);
    space.offer();
    space.lease.lost(&mount, false);
    tokio::time::sleep(MOMENT * 2).await;
    assert!(space.lease.check(MountId(3), 7).is_ok(), "nobody has asked");
    space.lease.drain(MountId(0)).await;
    assert!(refused(space.lease.check(MountId(3), 7)));
}
