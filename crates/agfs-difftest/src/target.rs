//! Something that operations are done on, and a thread of its own to do them in: two sides work at the same time.

use crate::op::Op;
use crate::outcome::Outcome;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Something that operations are done on.
pub trait Target {
    /// Does one operation.
    fn apply(&mut self, op: &Op) -> Outcome;
}

/// A target in a thread of its own.
pub struct Side {
    give: Option<Sender<Arc<[Op]>>>,
    take: Receiver<Vec<Outcome>>,
    thread: Option<JoinHandle<()>>,
}

impl Side {
    /// A side whose target is made, used and dropped in a new thread.
    pub fn new<T: Target>(make: impl FnOnce() -> T + Send + 'static) -> Side {
        let (give, ops) = channel::<Arc<[Op]>>();
        let (answer, take) = channel();
        let thread = std::thread::spawn(move || {
            let mut target = make();
            for batch in ops {
                if answer.send(batch.iter().map(|op| target.apply(op)).collect()).is_err() {
                    return;
                }
            }
        });
        Side { give: Some(give), take, thread: Some(thread) }
    }

    /// Begins to do these operations, in order.
    pub fn start(&self, ops: Arc<[Op]>) {
        // A thread that has ended is told of where its answer is missed.
        let _ = self.give.as_ref().unwrap().send(ops);
    }

    /// What the operations of the oldest start answered.
    ///
    /// # Panics
    /// If the target panicked.
    pub fn finish(&self) -> Vec<Outcome> {
        self.take.recv().expect("the target answers: see its panic above")
    }

    /// Does one operation.
    pub fn apply(&self, op: Op) -> Outcome {
        self.start(Arc::new([op]));
        self.finish().remove(0)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.give = None;
        // Waited for: what the target holds open is closed when this returns.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
