//! What runs in the containers of `real_node.rs`, which compiles it: a program that does as it is
//! told, with nothing but the standard library.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["say", what] => println!("{what}"),
        ["complain", what] => {
            println!("{what}");
            std::process::exit(1);
        }
        ["serve", port, what] => serve(port, what),
        ["ask", address] => ask(address),
        ["allocate", mebibytes] => allocate(mebibytes.parse().unwrap()),
        other => panic!("what is {other:?}?"),
    }
}

/// Says the same to everyone who connects.
fn serve(port: &str, what: &str) {
    let listener = TcpListener::bind(format!("0.0.0.0:{port}")).unwrap();
    println!("serving {what:?} on {port}");
    for stream in listener.incoming() {
        // Whoever has gone away already has missed it.
        let _ = stream.and_then(|mut stream| stream.write_all(what.as_bytes()));
    }
}

/// Prints what is said at an address, or nothing if nothing is said there within a second.
fn ask(address: &str) {
    let wait = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(&address.parse().unwrap(), wait).unwrap();
    stream.set_read_timeout(Some(wait)).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    println!("{text}");
}

/// Uses memory, page by page.
fn allocate(mebibytes: usize) {
    let mut hoard = Vec::new();
    for _ in 0..mebibytes {
        hoard.push(vec![1_u8; 1024 * 1024]);
    }
    println!("have {} MiB", hoard.len());
}
