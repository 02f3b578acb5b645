//! What is printed: a table, row by row as it is known.

/// A table of two columns.
pub struct Table {
    rows: usize,
}

impl Table {
    /// Prints its head, and on what machine it is.
    pub fn start() -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        println!("{cores} CPUs, load before {}\n\n| what | |\n|---|---|", load.trim());
        Self { rows: 0 }
    }

    /// Prints a row.
    pub fn row(&mut self, what: &str, value: impl std::fmt::Display) {
        self.rows += 1;
        println!("| {what} | {value} |");
    }
}
