//! Large primes, looked for by two threads at once: that is nearly all that a key takes. What is found
//! does not depend on which thread is faster.

use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crypto_bigint::{CheckedAdd, Limb, NonZero, Odd, Reciprocal, U256, Uint, Word};
use crypto_primes::hazmat::{SetBits, random_odd_integer};
use crypto_primes::{Flavor, is_prime};

use super::fermat::may_be_prime;
use crate::random::Random;

/// Primes below this are sieved by: dividing by more costs what it saves.
const SIEVED: u32 = 1 << 17;
/// How many of them a large number is divided by at once: their product fits into a word.
const AT_ONCE: usize = (Word::BITS / SIEVED.ilog2()) as usize;
/// How many numbers are looked through; one in 710 is a prime among odd ones of 2048 bits, so that
/// there is one all but always.
const WINDOW: usize = 1 << 14;

/// Two primes whose two highest bits are set, so that their product has twice as many bits. Each is
/// the first from an odd number on that is drawn from a randomness of its own.
pub(super) fn two_primes<const LIMBS: usize>(
    mut one: Random,
    mut other: Random,
) -> Option<(Uint<LIMBS>, Uint<LIMBS>)> {
    let bits = NonZeroU32::new(Uint::<LIMBS>::BITS)?;
    let search = |random: &mut Random| {
        let start: Odd<Uint<LIMBS>> = random_odd_integer(random, bits, SetBits::TwoMsb).ok()?;
        Some(Search::new(start.get(), U256::from_u8(2)))
    };
    loop {
        let searches = [search(&mut one)?, search(&mut other)?];
        run(&searches);
        let [one, other] = searches;
        if let (Some(one), Some(other)) = (one.result(), other.result()) {
            return Some((one, other));
        }
    }
}

/// The first prime among `start`, `start + step`, `start + 2 * step` and so on, if it is near enough.
pub(super) fn first_prime<const LIMBS: usize>(
    start: Uint<LIMBS>,
    step: U256,
) -> Option<Uint<LIMBS>> {
    let search = [Search::new(start, step)];
    run(&search);
    let [search] = search;
    search.result()
}

/// Works on one search after the other in this thread and one more. The second goes on with the next
/// search while the first looks closely at what it found.
fn run<const LIMBS: usize>(searches: &[Search<LIMBS>]) {
    let work = || searches.iter().for_each(Search::work);
    thread::scope(|scope| {
        // Where there are no more threads for this process it takes longer, and that is all.
        let _second = thread::Builder::new().spawn_scoped(scope, work);
        work();
    });
}

/// The search for the first prime of a progression.
struct Search<const LIMBS: usize> {
    start: Uint<LIMBS>,
    step: Uint<LIMBS>,
    /// Which numbers of the progression no small prime divides.
    candidates: Vec<u32>,
    /// The next one of them that nobody looks at yet.
    next: AtomicUsize,
    /// The first that passed the quick test, and the first that is a prime; their number if none is.
    passed: AtomicUsize,
    found: AtomicUsize,
}

impl<const LIMBS: usize> Search<LIMBS> {
    fn new(start: Uint<LIMBS>, step: U256) -> Self {
        let candidates = sieve(&start, &step);
        let none = candidates.len();
        let [passed, found] = [none, none].map(AtomicUsize::new);
        Self { start, step: step.resize(), candidates, next: AtomicUsize::new(0), passed, found }
    }

    /// Looks at candidates in their order until one passes: each before it has been looked at then, by
    /// this thread or another.
    fn work(&self) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.passed.load(Ordering::Relaxed) {
                return;
            }
            let Some(number) = self.candidate(at) else { return };
            if may_be_prime(&number) {
                self.passed.fetch_min(at, Ordering::Relaxed);
                if is_prime(Flavor::Any, &number) {
                    self.found.fetch_min(at, Ordering::Relaxed);
                }
            }
        }
    }

    fn candidate(&self, at: usize) -> Option<Uint<LIMBS>> {
        let steps = Uint::<LIMBS>::from_u32(*self.candidates.get(at)?);
        self.start.checked_add(&self.step.wrapping_mul(&steps)).into_option()
    }

    /// What was found. That the quick test is wrong is a matter of theory; then there is nothing.
    fn result(self) -> Option<Uint<LIMBS>> {
        let found = self.found.load(Ordering::Relaxed);
        if found == self.passed.load(Ordering::Relaxed) { self.candidate(found) } else { None }
    }
}

/// The small primes that are sieved by.
static SMALL_PRIMES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut composite = vec![false; SIEVED as usize];
    let mut primes = Vec::new();
    for number in 2..SIEVED {
        if !composite.get(number as usize).is_some_and(|it| *it) {
            primes.push(number);
            let multiples = composite.iter_mut().skip(number as usize).step_by(number as usize);
            multiples.for_each(|it| *it = true);
        }
    }
    primes
});

/// Which of the first numbers of a progression no small prime divides.
fn sieve<const LIMBS: usize>(start: &Uint<LIMBS>, step: &U256) -> Vec<u32> {
    let mut composite = vec![false; WINDOW];
    for primes in SMALL_PRIMES.chunks(AT_ONCE) {
        let product = primes.iter().map(|prime| Word::from(*prime)).product();
        let Some(product) = NonZero::new(Limb(product)).into_option() else { continue };
        let divisor = Reciprocal::new(product);
        let start = start.rem_limb_with_reciprocal(&divisor).0;
        let step = step.rem_limb_with_reciprocal(&divisor).0;
        for prime in primes {
            let rest = |of: Word| i64::try_from(of % Word::from(*prime)).unwrap_or_default();
            if let Some(first) = first_multiple(rest(start), rest(step), i64::from(*prime)) {
                let multiples = composite.iter_mut().skip(first).step_by(*prime as usize);
                multiples.for_each(|it| *it = true);
            }
        }
    }
    (0..).zip(composite).filter(|(_, composite)| !composite).map(|(steps, _)| steps).collect()
}

/// After how many steps a prime divides a number; `None` if it divides none.
fn first_multiple(start: i64, step: i64, prime: i64) -> Option<usize> {
    // The inverse of the step, by Euclid.
    let (mut one, mut other) = ((prime, 0), (step, 1));
    while other.0 != 0 {
        let times = one.0 / other.0;
        (one, other) = (other, (one.0 - times * other.0, one.1 - times * other.1));
    }
    match one {
        (1, inverse) => usize::try_from((-start * inverse).rem_euclid(prime)).ok(),
        _ => (start == 0).then_some(0), // the prime divides the step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_prime_of_a_progression_is_found() {
        for seed in 1..20_u64 {
            let start = U256::from_u64(seed).wrapping_mul(&U256::MAX.shr_vartime(7)) | U256::ONE;
            for step in [2_u64, 1 << 40] {
                let step = U256::from_u64(step);
                let mut number = start;
                while !is_prime(Flavor::Any, &number) {
                    number = number.wrapping_add(&step);
                }
                assert_eq!(first_prime(start, step), Some(number), "from {start} by {step}");
            }
        }
    }

    #[test]
    fn where_a_small_prime_divides_every_number_there_is_none() {
        assert_eq!(first_prime(U256::MAX.shr_vartime(9) << 1, U256::from_u8(2)), None);
    }
}
