//! Work on many things, shared between threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads gain little: what cannot be shared takes longer than what can be by then.
const MAX_THREADS: usize = 4;

/// What `work` makes of each item, in their order; each thread has a tool of its own for it. For what
/// takes much longer than starting a thread (some 50 microseconds).
pub(crate) fn map<T: Sync, R: Send, S>(
    items: &[T],
    tool: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    map_beside(items, tool, work, || ()).0
}

/// The same beside something else: other threads begin at once, this one when it has done that.
pub(crate) fn map_beside<T: Sync, R: Send, S, M>(
    items: &[T],
    tool: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
    first: impl FnOnce() -> M,
) -> (Vec<R>, M) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let some = || {
        let (mut tool, mut done) = (tool(), Vec::new());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(&mut tool, item)));
        }
    };
    let mut all: Vec<_> = items.iter().map(|_| None).collect();
    let first = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, some).ok();
        let others: Vec<_> = (1..cores.min(MAX_THREADS)).filter_map(start).collect();
        let first = first();
        let own = some();
        let theirs = others.into_iter().flat_map(|other| other.join().unwrap_or_default());
        for (at, result) in own.into_iter().chain(theirs) {
            if let Some(place) = all.get_mut(at) {
                *place = Some(result);
            }
        }
        first
    });
    // A thread that has failed leaves its part.
    let left = |(item, done): (&T, Option<R>)| done.unwrap_or_else(|| work(&mut tool(), item));
    (items.iter().zip(all).map(left).collect(), first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let squares = map(&items, || 1, |tool, item| *tool * item * item);
        assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
        let (squares, beside) = map_beside(&items, || 1, |_, item| item * item, || "done");
        assert_eq!((squares.get(9), beside), (Some(&81), "done"));
        let none: Vec<usize> = map(&[], || (), |(), item: &usize| *item);
        assert!(none.is_empty());
    }
}
