//! How the command is linked.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // For a fixed place in memory, as helm and kubectl are: else 38,000 addresses in tables would be
    // put right at every start, which takes as long as rendering a small chart.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|is| is == value);
    // A static program says that by its relocation model.
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|all| all.split(',').any(|it| it == "crt-static"));
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo::rustc-link-arg-bin=catamaran=-no-pie");
    }
}
