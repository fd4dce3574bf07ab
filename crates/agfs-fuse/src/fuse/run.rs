//! Running a request: on the event loop's thread as long as everything is in memory, in the background from where it must
//! wait. A request that panics is answered EIO, and the mount goes on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

/// Runs `work` to its end, here if it need not wait.
///
/// `work` owns its reply, and a reply that is dropped unanswered says EIO: that is what a panic comes to.
pub(super) fn run(runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let _context = runtime.enter();
    let mut work = Box::pin(work);
    // Where it waits for something it is polled again in the background at once, so nobody needs to be woken from here.
    let first = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
    match first {
        Ok(Poll::Ready(())) => {}
        Ok(Poll::Pending) => drop(runtime.spawn(work)),
        Err(_) => tracing::error!("a request panicked and was answered with EIO"),
    }
}

/// Does work that never waits; `None` when it panicked.
pub(super) fn now<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).inspect_err(|_| tracing::error!("a request panicked")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn what_is_ready_runs_here_and_what_waits_runs_on() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let here = std::thread::current().id();
        let (tx, rx) = channel();
        let told = tx.clone();
        run(runtime.handle(), async move { told.send(std::thread::current().id()).unwrap() });
        assert_eq!(rx.try_recv(), Ok(here));
        run(runtime.handle(), async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            tx.send(std::thread::current().id()).unwrap();
        });
        assert_ne!(rx.recv_timeout(Duration::from_secs(5)).unwrap(), here);
    }

    #[test]
    fn a_panic_ends_the_request_only() {
        struct Reply(std::sync::mpsc::Sender<&'static str>);
        impl Drop for Reply {
            fn drop(&mut self) {
                let _ = self.0.send("dropped");
            }
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (tx, rx) = channel();
        let (a, b) = (Reply(tx.clone()), Reply(tx));
        run(runtime.handle(), async move {
            let _a = a;
            panic!("at once");
        });
        run(runtime.handle(), async move {
            let _b = b;
            tokio::task::yield_now().await;
            panic!("later");
        });
        for _ in 0..2 {
            assert_eq!(rx.recv_timeout(Duration::from_secs(5)), Ok("dropped"));
        }
        assert_eq!(now(|| 5), Some(5));
        assert_eq!(now(|| -> i32 { panic!("here") }), None);
    }
}
