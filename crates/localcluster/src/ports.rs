//! Ports for servers that a test starts beside a cluster.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::error::{Error, Result};

/// Below those that the kernel gives to outgoing connections (32768 and up, on Linux), and those of a
/// Service's `nodePort`.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port of 127.0.0.1 on which nobody listens; of one process no two are the same.
///
/// The kernel gives it to no connection. Of the ports that it chooses itself it would: while a server is
/// down the next connection of anybody may take its port, and even one to the server itself, which then
/// talks to itself.
///
/// # Errors
/// If all of them are taken.
pub fn free_port() -> Result<u16> {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    // Processes that run at once begin in different places.
    let begin = (std::process::id() % u32::from(COUNT)).wrapping_mul(37);
    let next = || {
        let asked = u32::from(ASKED.fetch_add(1, Ordering::Relaxed));
        let offset = (begin + asked) % u32::from(COUNT);
        FIRST + u16::try_from(offset).unwrap_or_default()
    };
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut ports = (0..COUNT).map(|_| next());
    let none = || Error::Invalid(format!("no port is free among {COUNT} from {FIRST}"));
    ports.find(is_free).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_and_what_is_taken_is_left_out() {
        let one = free_port().unwrap();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, one + 1));
        let two = free_port().unwrap();
        assert!(one != two && (FIRST..FIRST + COUNT).contains(&two));
        assert!(taken.is_err() || two != one + 1);
    }
}
