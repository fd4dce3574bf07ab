//! The thread behind a cache: takes stock of the directory, writes chunks to it, evicts. Readers never wait for it.

use super::disk::Disk;
use agfs_core::{ChunkHash, Error, Result};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The most bytes that may wait to be written; beyond it chunks are not kept on disk.
const BACKLOG: usize = 64 << 20;

enum Task {
    Write(ChunkHash, Bytes),
    Flush(Sender<()>),
}

/// The thread's handle: ends it when dropped, after what it has in hand.
pub(super) struct Worker {
    tasks: Option<Sender<Task>>,
    waiting: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub fn start(disk: Arc<Disk>) -> Result<Worker> {
        let (tasks, receiver) = channel();
        let (waiting, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (waiting, stop) = (waiting.clone(), stop.clone());
            std::thread::Builder::new()
                .name("agfs-cache".into())
                .spawn(move || work(&disk, &receiver, &waiting, &stop))
                .map_err(|e| Error::io(format!("the cache's thread cannot be started: {e}")))?
        };
        Ok(Worker { tasks: Some(tasks), waiting, stop, thread: Some(thread) })
    }

    /// Has a chunk written, unless too much waits already.
    pub fn write(&self, hash: ChunkHash, data: Bytes) {
        let size = data.len();
        if self.waiting.fetch_add(size, Ordering::Relaxed) > BACKLOG {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            return;
        }
        if let Some(tasks) = &self.tasks {
            // The thread ends only with the worker.
            let _ = tasks.send(Task::Write(hash, data));
        }
    }

    /// Returns when everything before is done.
    pub fn flush(&self) {
        let (done, wait) = channel();
        if let Some(tasks) = &self.tasks
            && tasks.send(Task::Flush(done)).is_ok()
        {
            let _ = wait.recv();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the cache's thread failed");
        }
    }
}

fn work(disk: &Disk, tasks: &Receiver<Task>, waiting: &AtomicUsize, stop: &AtomicBool) {
    let go_on = || !stop.load(Ordering::Relaxed);
    disk.scan(go_on);
    while let Ok(task) = tasks.recv() {
        match task {
            Task::Write(hash, data) => {
                if go_on() {
                    disk.write(hash, &data);
                }
                waiting.fetch_sub(data.len(), Ordering::Relaxed);
            }
            Task::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}
