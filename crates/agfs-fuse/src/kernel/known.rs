//! Which nodes the kernel knows, which version its pages of each belong to, and what it is about to count down itself.
//!
//! Counts only; what follows from them is decided by the cache policy and the sink.

use super::threads;
use agfs_core::FileId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SHARDS: usize = 16;
/// How long a program may take to take up an answer that was sent, in milliseconds.
const TAKE_UP: u64 = 20;
/// How long a thread may take to count down the links of a file once it has taken up the answer to the removal of a name.
const COUNT_DOWN: Duration = Duration::from_millis(2);
/// How often it is looked whether a thread has run since it was answered, and for how long at most: on a machine with more
/// to do than it can, that takes a while.
const LOOK_AGAIN: Duration = Duration::from_micros(500);
const LOOK_AT_MOST: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// How many lookups the kernel has not given back.
    lookups: u64,
    /// The `version_no` that all of the kernel's pages of the node belong to, with this mount's own writes since.
    pages: Option<u64>,
}

/// The removal of a name of a node that has others.
#[derive(Clone, Copy, Debug)]
enum Removing {
    /// Being made; the node had so many links before.
    Now(u32),
    /// Answered to a thread, which may not have taken the answer up.
    Answered(Answered),
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    thread: u32,
    /// How often the thread had run, if it slept when it was answered: it has not taken the answer up before it runs again.
    runs: Option<u64>,
}

/// The nodes that the kernel knows.
#[derive(Debug, Default)]
pub struct Known {
    shards: [Mutex<FxHashMap<FileId, Entry>>; SHARDS],
    /// Nodes of which a name is being removed, with the links that they had before.
    removing: Mutex<FxHashMap<FileId, Removing>>,
    answering: Arrivals,
}

/// Answers on their way.
#[derive(Debug)]
struct Arrivals {
    /// How many are being made.
    now: AtomicU64,
    /// When the last one was sent, in milliseconds after `start`: the program that waits takes it up a little later.
    last: AtomicU64,
    start: Instant,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals { now: AtomicU64::new(0), last: AtomicU64::new(0), start: Instant::now() }
    }
}

impl Arrivals {
    fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// While it lives, an answer that carries attributes is on its way to the kernel.
#[derive(Debug)]
pub struct Answering<'a>(&'a Arrivals);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.last.store(self.0.millis(), Ordering::Release);
        self.0.now.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Removing {
    /// How long the kernel may not have counted down at least.
    fn left(&mut self) -> Option<Duration> {
        let Removing::Answered(answered) = self else { return None };
        if let Some(before) = answered.runs {
            match threads::runs(answered.thread) {
                Some(now) if now == before && answered.at.elapsed() < LOOK_AT_MOST => return Some(LOOK_AGAIN),
                Some(_) => *answered = Answered { at: Instant::now(), runs: None, ..*answered },
                // It has come to its end since.
                None => return None,
            }
        }
        COUNT_DOWN.checked_sub(answered.at.elapsed())
    }
}

impl Known {
    fn shard(&self, id: FileId) -> &Mutex<FxHashMap<FileId, Entry>> {
        // The remainder is below the number of shards.
        &self.shards[(id.0 % SHARDS as u64) as usize]
    }

    /// Marks an answer as on its way; keep the result until it is sent.
    pub fn answering(&self) -> Answering<'_> {
        self.answering.now.fetch_add(1, Ordering::AcqRel);
        Answering(&self.answering)
    }

    /// Whether answers are on their way, or were a moment ago.
    pub fn is_answering(&self) -> bool {
        let arrivals = &self.answering;
        arrivals.now.load(Ordering::Acquire) > 0
            || arrivals.millis().saturating_sub(arrivals.last.load(Ordering::Acquire)) < TAKE_UP
    }

    /// The kernel is being told of a node.
    pub fn looked_up(&self, id: FileId) {
        self.shard(id).lock().entry(id).or_default().lookups += 1;
    }

    /// The kernel gives lookups back. Returns whether it does not know the node any more.
    pub fn forgotten(&self, id: FileId, lookups: u64) -> bool {
        let mut shard = self.shard(id).lock();
        let Some(entry) = shard.get_mut(&id) else { return true };
        entry.lookups = entry.lookups.saturating_sub(lookups);
        if entry.lookups > 0 {
            return false;
        }
        shard.remove(&id);
        true
    }

    /// Whether the kernel knows a node.
    pub fn is_known(&self, id: FileId) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    /// The version that the kernel's pages belong to, if they belong to one.
    pub fn pages(&self, id: FileId) -> Option<u64> {
        self.shard(id).lock().get(&id).and_then(|entry| entry.pages)
    }

    /// From now on the kernel's pages belong to `version_no`: it drops the others, or they became that version.
    pub fn set_pages(&self, id: FileId, version_no: u64) {
        if let Some(entry) = self.shard(id).lock().get_mut(&id) {
            entry.pages = Some(version_no);
        }
    }

    /// This mount's own commit made the version `to` out of what the kernel's pages hold if they belong to `from`.
    pub fn pages_became(&self, id: FileId, from: u64, to: u64) {
        if let Some(entry) = self.shard(id).lock().get_mut(&id)
            && entry.pages == Some(from)
        {
            entry.pages = Some(to);
        }
    }

    /// A name of a node with `links` links is being removed. When that is answered, the kernel counts one down from what it
    /// knows; so until then it is not to learn of the new count, or it would be one too low.
    pub fn begin_removal(&self, id: FileId, links: u32) {
        let mut removing = self.removing.lock();
        removing.retain(|_, r| matches!(r, Removing::Now(_)) || r.left().is_some());
        removing.insert(id, Removing::Now(links));
    }

    /// The removal is being answered to this thread.
    pub fn answer_removal(&self, id: FileId, thread: u32) {
        let answered = Answered { at: Instant::now(), thread, runs: threads::runs_of_sleeping(thread) };
        self.removing.lock().insert(id, Removing::Answered(answered));
    }

    /// The removal was not made after all; one that was answered stays.
    pub fn cancel_removal(&self, id: FileId) {
        self.removing.lock().retain(|other, r| *other != id || matches!(r, Removing::Answered(_)));
    }

    /// The links to tell the kernel of, where there are `links`.
    pub fn links_to_show(&self, id: FileId, links: u32) -> u32 {
        match self.removing.lock().get(&id) {
            Some(Removing::Now(before)) => links.max(*before),
            Some(Removing::Answered(_)) | None => links,
        }
    }

    /// How long an answer with the attributes of a node is to be held back from `thread` before this is asked again, so that
    /// the kernel has counted down when it takes the answer up. Whoever removed the name itself has come back from that.
    pub fn hold_back(&self, id: FileId, thread: u32) -> Option<Duration> {
        match self.removing.lock().get_mut(&id)? {
            Removing::Answered(answered) if answered.thread == thread => None,
            other => other.left(),
        }
    }

    /// The kernel's pages belong to no version that is still wanted.
    pub fn clear_pages(&self, id: FileId) {
        if let Some(entry) = self.shard(id).lock().get_mut(&id) {
            entry.pages = None;
        }
    }

    /// No page of any node belongs to a version that is still wanted. Returns all nodes that the kernel knows.
    pub fn clear_all_pages(&self) -> Vec<FileId> {
        let mut ids = Vec::new();
        for shard in &self.shards {
            for (id, entry) in shard.lock().iter_mut() {
                entry.pages = None;
                ids.push(*id);
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_until_every_lookup_is_given_back() {
        let known = Known::default();
        let id = FileId(7);
        known.set_pages(id, 1);
        assert_eq!(known.pages(id), None);
        known.looked_up(id);
        known.looked_up(id);
        known.set_pages(id, 1);
        assert!(!known.forgotten(id, 1));
        assert_eq!((known.is_known(id), known.pages(id)), (true, Some(1)));
        assert!(known.forgotten(id, 5));
        assert_eq!((known.is_known(id), known.pages(id)), (false, None));
    }

    #[test]
    fn a_count_is_not_told_while_the_kernel_is_about_to_count_down() {
        let (known, id) = (Known::default(), FileId(7));
        known.begin_removal(id, 2);
        assert_eq!([2, 1, 3].map(|now| known.links_to_show(id, now)), [2, 2, 3]);
        assert_eq!(known.links_to_show(FileId(8), 1), 1);
        assert_eq!(known.hold_back(id, 5), None, "what is told now is the old count");
        known.answer_removal(id, 5);
        known.cancel_removal(id);
        assert_eq!((known.links_to_show(id, 1), known.hold_back(id, 5)), (1, None));
        assert!(known.hold_back(id, 6).is_some_and(|wait| wait <= COUNT_DOWN));
        known.begin_removal(id, 2);
        known.cancel_removal(id);
        assert_eq!((known.links_to_show(id, 1), known.hold_back(id, 6)), (1, None));
    }

    #[test]
    fn pages_follow_own_commits_only_from_the_version_they_belong_to() {
        let known = Known::default();
        let id = FileId(7);
        known.looked_up(id);
        known.set_pages(id, 3);
        known.pages_became(id, 2, 4);
        assert_eq!(known.pages(id), Some(3));
        known.pages_became(id, 3, 4);
        assert_eq!(known.pages(id), Some(4));
        assert_eq!(known.clear_all_pages(), [id]);
        known.pages_became(id, 4, 5);
        assert_eq!(known.pages(id), None);
    }
}
