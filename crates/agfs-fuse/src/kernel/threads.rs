//! Whether a thread that waits for an answer has run since: from /proc, where the kernel counts it. Nothing is decided here.

use std::fs;

/// How often the thread was given a processor; `None` when there is no such thread, or nothing is known of it.
pub(super) fn runs(thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    // Three numbers: time on a processor, time waiting for one, and how often one was given.
    text.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The same of a thread that sleeps now. One that does not will take up its answer without being given a processor anew.
pub(super) fn runs_of_sleeping(thread: u32) -> Option<u64> {
    // First the count: a thread that runs in between has another one, and sleeps for another reason.
    let runs = runs(thread)?;
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    // The state follows the name, which is in parentheses and may contain some.
    let (_, rest) = stat.rsplit_once(')')?;
    matches!(rest.trim_start().chars().next(), Some('S' | 'D')).then_some(runs).filter(|_| runs > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_has_not_run() {
        let (wake, woken) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            woken.recv().unwrap();
            tell.send(0).unwrap();
            woken.recv().unwrap();
        });
        let thread = told.recv().unwrap();
        let slept = |_: &u32| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            runs_of_sleeping(thread)
        };
        let before = (0..1_000).find_map(|n| slept(&n)).unwrap();
        assert_eq!(runs(thread), Some(before));
        wake.send(()).unwrap();
        told.recv().unwrap();
        assert!(runs(thread).unwrap() > before);
        wake.send(()).unwrap();
        sleeper.join().unwrap();
        assert_eq!((runs(thread), runs_of_sleeping(thread)), (None, None));
    }
}
