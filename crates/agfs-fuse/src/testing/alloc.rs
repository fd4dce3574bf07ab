//! An allocator that counts what each thread has, as a real one would take it from memory: so that a test can say what a
//! structure costs whatever other tests do meanwhile.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HERE: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

/// What glibc takes for a block: a header of 8 bytes, multiples of 16, at least 32.
fn taken(size: usize) -> i64 {
    ((size + 8).next_multiple_of(16)).max(32) as i64
}

// SAFETY: every call goes to the system's allocator unchanged; the count is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = HERE.try_with(|here| here.set(here.get() + taken(layout.size())));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let _ = HERE.try_with(|here| here.set(here.get() - taken(layout.size())));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that this thread has allocated and not freed.
pub fn allocated_here() -> i64 {
    HERE.with(Cell::get)
}
