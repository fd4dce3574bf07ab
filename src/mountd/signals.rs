//! SIGINT, SIGTERM and SIGHUP as something to wait for. What they mean is decided by who waits.

use crate::exit::local;
use agfs_core::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a program to end.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Begins to catch them. Must be called within a runtime.
    pub fn new() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(|e| local("catching signals", &e));
        Ok(Signals {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hangup: catch(SignalKind::hangup())?,
        })
    }

    /// Returns when one came.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
