//! What the Jobs run, on a real PostgreSQL server: a restore is tested by restoring.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use catamaran_testkit::Server;

const SET_UP: &str = include_str!("../scripts/set-up.sh");
const DUMP: &str = include_str!("../scripts/dump.sh");
const LOAD: &str = include_str!("../scripts/load.sh");
const START: &str = include_str!("../scripts/start.sh");
const ELECT: &str = include_str!("../scripts/elect.sh");
const PROMOTE: &str = include_str!("../scripts/promote.sh");
/// A name that no shell, no SQL and no connection string may read as more than a name.
const NAME: &str = "x'; DROP DATABASE postgres; -- \"$(touch /tmp/x)\" \\ dbname=postgres ü";

struct Jobs<'a> {
    server: &'a Server,
    folder: &'a Path,
}

impl Jobs<'_> {
    fn run(&self, script: &str, environment: &[(&str, &str)]) -> Output {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).env("PGHOST", "127.0.0.1").env("PGUSER", Server::USER);
        sh.env("PGPORT", self.server.port.to_string()).env("PGPASSWORD", &self.server.password);
        sh.env("NAME", NAME).env("FOLDER", self.folder).env("REPORT", self.folder.join("report"));
        sh.envs(environment.iter().copied()).output().unwrap()
    }

    fn well(&self, script: &str, environment: &[(&str, &str)]) -> String {
        let output = self.run(script, environment);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(self.folder.join("report")).unwrap_or_default()
    }

    fn sql(&self, statement: &str) -> String {
        let script = "PGDATABASE=$NAME psql --no-psqlrc -tA -v ON_ERROR_STOP=1 -c \"$SQL\"";
        let output = self.run(script, &[("SQL", statement)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn dumps(&self) -> usize {
        let entries = std::fs::read_dir(self.folder).unwrap();
        entries
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "dump"))
            .count()
    }
}

#[test]
fn a_database_is_set_up_dumped_and_loaded() {
    let (server, folder) = (Server::postgres(), tempfile::tempdir().unwrap());
    let jobs = Jobs { server: &server, folder: folder.path() };
    jobs.well(SET_UP, &[]);
    jobs.well(SET_UP, &[]); // once more, as after a crash
    jobs.sql("CREATE TABLE t (i int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 1000)");
    let told = jobs.well(DUMP, &[("WHY", "backup"), ("KEEP", "2")]);
    let report: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(report["bytes"].as_u64().unwrap() > 1000, "{told}");
    let file = report["file"].as_str().unwrap().to_owned();

    // Lost, and more: it is what the backup holds, again.
    jobs.sql("DELETE FROM t WHERE i > 10; ALTER TABLE t ADD COLUMN j int");
    jobs.well(LOAD, &[("BACKUP", "latest")]);
    assert_eq!(jobs.sql("SELECT count(*), max(i) FROM t"), "1000|1000");
    jobs.sql("DROP TABLE t");
    jobs.well(LOAD, &[("BACKUP", &file)]);
    assert_eq!(jobs.sql("SELECT sum(i) FROM t"), "500500");

    // A dump that is damaged, or none: nothing is touched.
    let whole = std::fs::read(folder.path().join(&file)).unwrap();
    std::fs::write(folder.path().join(&file), &whole[..whole.len() / 2]).unwrap();
    for wrong in [file.as_str(), "../etc/passwd", "none.dump", ""] {
        assert!(!jobs.run(LOAD, &[("BACKUP", wrong)]).status.success(), "{wrong}");
        assert_eq!(jobs.sql("SELECT sum(i) FROM t"), "500500");
    }

    // Of each reason so many are kept; before an upgrade nobody else is connected.
    for year in ["2001", "2002", "2003"] {
        std::fs::write(folder.path().join(format!("{year}0101T000000Z-backup.dump")), "").unwrap();
    }
    jobs.well(DUMP, &[("WHY", "upgrade-1"), ("ALONE", "yes")]);
    jobs.well(DUMP, &[("WHY", "backup"), ("KEEP", "2")]);
    assert_eq!(jobs.dumps(), 3, "two backups and the dump before the upgrade");
    jobs.well(LOAD, &[("BACKUP", "latest"), ("WHY", "upgrade-1")]);
    assert_eq!(jobs.sql("SELECT sum(i) FROM t"), "500500");
}

#[test]
fn a_standby_is_a_copy_that_follows_and_takes_over() {
    let (server, folder) = (Server::postgres(), tempfile::tempdir().unwrap());
    let jobs = Jobs { server: &server, folder: folder.path() };
    jobs.well(SET_UP, &[]);
    jobs.sql("CREATE TABLE t (i int)");
    let data = folder.path().join("2");
    let data_text = data.display().to_string();
    let start = [("POD", "db-1"), ("PRIMARY", "db-0"), ("NEW", "yes"), ("PGDATA", &data_text)];
    jobs.well(START, &start);
    jobs.well(START, &start); // a restart
    // In a pod these are an argument of the server and its environment.
    let password = server.password.replace('\\', r"\\").replace('\'', r"\'");
    let primary =
        format!("host=127.0.0.1 port={} user={} password='{password}'", server.port, Server::USER);
    let primary = primary.replace('\\', r"\\").replace('\'', "''");
    let follows = format!("primary_conninfo = '{primary}'\n");
    std::fs::write(data.join("postgresql.auto.conf"), follows).unwrap();
    let standby = Server::postgres_over(&data, &server.password);
    let follower = Jobs { server: &standby, folder: folder.path() };
    jobs.sql("INSERT INTO t VALUES (42)");
    let begun = std::time::Instant::now();
    while follower.sql("SELECT sum(i) FROM t") != "42" {
        assert!(begun.elapsed() < Duration::from_mins(1), "{}", standby.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(follower.sql("SELECT pg_is_in_recovery()"), "t");

    // Asked what it has, it says so; one that does not answer keeps everybody from being chosen.
    let told = follower.well(ELECT, &[("CANDIDATES", "db-1=127.0.0.1")]);
    assert_eq!(told, r#"{"primary":"db-1"}"#);
    let silent = [("CANDIDATES", "db-1=127.0.0.1 db-2=127.1.2.3")];
    assert!(!follower.run(ELECT, &silent).status.success());
    follower.well(PROMOTE, &[]);
    follower.well(PROMOTE, &[]); // once more, as after a crash
    follower.sql("INSERT INTO t VALUES (1)");
}

#[test]
fn an_empty_database_never_takes_the_place_of_a_lost_one() {
    let (server, folder) = (Server::postgres(), tempfile::tempdir().unwrap());
    let jobs = Jobs { server: &server, folder: folder.path() };
    let data = folder.path().join("1").display().to_string();
    let primary = [("POD", "db-0"), ("PRIMARY", "db-0"), ("NEW", "no"), ("PGDATA", &data)];
    assert!(!jobs.run(START, &primary).status.success());
    let report = std::fs::read_to_string(folder.path().join("report")).unwrap();
    assert!(report.contains("the data of the primary is gone"), "{report}");
}
