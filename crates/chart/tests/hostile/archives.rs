//! Hostile packed charts.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use crate::case::{Case, End, Input, chart_yaml};

fn header(path: &str, size: u64, kind: EntryType) -> Header {
    let mut header = Header::new_ustar();
    // Written by hand: the library refuses names that try to escape.
    for (to, from) in header.as_old_mut().name.iter_mut().zip(path.bytes()) {
        *to = from;
    }
    header.set_size(size);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header.set_cksum();
    header
}

fn gz(fill: impl FnOnce(&mut GzEncoder<Vec<u8>>)) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    fill(&mut out);
    out.finish().unwrap()
}

fn entry(out: &mut impl std::io::Write, path: &str, kind: EntryType, data: &[u8]) {
    out.write_all(header(path, data.len() as u64, kind).as_bytes()).unwrap();
    out.write_all(data).unwrap();
    out.write_all(&vec![0; data.len().next_multiple_of(512) - data.len()]).unwrap();
}

fn end(out: &mut impl std::io::Write) {
    out.write_all(&[0; 1024]).unwrap();
}

/// A packed chart of these files.
pub fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    gz(|out| {
        files.iter().for_each(|(path, data)| entry(out, path, EntryType::Regular, data));
        end(out);
    })
}

/// A sound chart, and behind it whatever is added.
fn with(add: impl FnOnce(&mut GzEncoder<Vec<u8>>)) -> Vec<u8> {
    gz(|out| {
        entry(out, "c/Chart.yaml", EntryType::Regular, &chart_yaml().1);
        entry(out, "c/templates/a.yaml", EntryType::Regular, b"a: {{ .Files.Get \"x\" | quote }}");
        add(out);
        end(out);
    })
}

fn zeros(out: &mut impl std::io::Write, mebibytes: usize) {
    (0..mebibytes).for_each(|_| out.write_all(&vec![0; 1 << 20]).unwrap());
}

fn case(name: &str, bytes: Vec<u8>, end: End) -> Case {
    Case { name: name.to_owned(), input: Input::Archive(bytes), end }
}

/// A sound chart with a file of this name.
fn named(path: &str, error: &'static str) -> Case {
    let bytes = with(|out| entry(out, path, EntryType::Regular, b"x"));
    case(&format!("CVE-2019-1000008: the file {path}"), bytes, End::Error(error))
}

/// A sound chart with something that is no file, and leads out of it. It has no content, as in
/// Helm: nothing outside of the archive is ever read.
fn linked(name: &str, kind: EntryType) -> Case {
    let bytes = with(|out| {
        let mut header = header("c/x", 0, kind);
        header.set_link_name_literal("/etc/passwd").unwrap();
        header.set_cksum();
        out.write_all(header.as_bytes()).unwrap();
    });
    case(name, bytes, End::Prints("a: \"\""))
}

/// A sound chart with this archive as a subchart.
fn inner(bytes: &[u8]) -> Vec<u8> {
    with(|out| entry(out, "c/charts/d.tgz", EntryType::Regular, bytes))
}

pub fn cases() -> Vec<Case> {
    [broken(), large(), many(), within(), escaping()].into_iter().flatten().collect()
}

/// What is no archive of a chart.
fn broken() -> Vec<Case> {
    vec![
        case(
            "no archive",
            b"hello".to_vec(),
            End::Error("does not appear to be a gzipped archive"),
        ),
        case("an archive cut off", with(|_| {}).into_iter().take(60).collect(), End::Error("")),
        case("nothing in it", gz(end), End::Error("no files in chart archive")),
    ]
}

/// Files that are large, or say that they are.
fn large() -> Vec<Case> {
    vec![
        case("CVE-2025-32386: two gigabytes of zeros", gz(|out| zeros(out, 2048)), End::Error("")),
        case(
            "CVE-2025-32386: a file of a gigabyte",
            with(|out| {
                out.write_all(header("c/x", 1 << 30, EntryType::Regular).as_bytes()).unwrap();
                zeros(out, 1024);
            }),
            End::Error("larger than the maximum file size"),
        ),
        case(
            "CVE-2025-32386: a file that says it has eight exabytes",
            with(|out| {
                let mut h = header("c/x", 0, EntryType::Regular);
                h.set_size(1 << 62);
                h.set_cksum();
                out.write_all(h.as_bytes()).unwrap();
            }),
            End::Error(""),
        ),
        case(
            "CVE-2025-32386: a file that says it is larger than it is",
            with(|out| {
                out.write_all(header("c/x", 4 << 20, EntryType::Regular).as_bytes()).unwrap();
            }),
            End::Error(""),
        ),
        case(
            "a hundred files of zeros",
            with(|out| {
                (0..100).for_each(|n| {
                    entry(out, &format!("c/{n}"), EntryType::Regular, &vec![0; 5 << 20]);
                });
            }),
            End::Error("larger than the maximum size"),
        ),
    ]
}

/// Very many entries, and entries about entries.
fn many() -> Vec<Case> {
    vec![
        case(
            "a million files",
            with(|out| {
                (0..1_000_000).for_each(|n| {
                    out.write_all(header(&format!("c/{n}"), 0, EntryType::Regular).as_bytes())
                        .unwrap();
                });
            }),
            End::Error("more than 50000 files"),
        ),
        case(
            "a million folders",
            with(|out| {
                (0..1_000_000).for_each(|n| {
                    out.write_all(header(&format!("c/{n}/"), 0, EntryType::Directory).as_bytes())
                        .unwrap();
                });
            }),
            End::Somehow,
        ),
        case(
            "a name of 300 megabytes",
            with(|out| {
                out.write_all(
                    header("././@LongLink", 300 << 20, EntryType::GNULongName).as_bytes(),
                )
                .unwrap();
                zeros(out, 300);
            }),
            End::Error("header field too long"),
        ),
        case(
            "facts of 300 megabytes",
            with(|out| {
                out.write_all(header("pax", 300 << 20, EntryType::XHeader).as_bytes()).unwrap();
                zeros(out, 300);
            }),
            End::Error("header field too long"),
        ),
        case(
            "a sparse file of a terabyte",
            with(|out| {
                let mut header = Header::new_gnu();
                header.set_path("c/x").unwrap();
                header.set_size(0);
                header.set_entry_type(EntryType::GNUSparse);
                let gnu = header.as_gnu_mut().unwrap();
                gnu.realsize.copy_from_slice(b"20000000000\0");
                gnu.sparse[0].offset.copy_from_slice(b"20000000000\0");
                gnu.sparse[0].numbytes.copy_from_slice(b"00000000000\0");
                header.set_cksum();
                out.write_all(header.as_bytes()).unwrap();
            }),
            End::Error(""),
        ),
    ]
}

/// Archives in archives.
fn within() -> Vec<Case> {
    vec![
        case(
            "an archive in an archive in an archive",
            (0..100).fold(with(|_| {}), |bytes, _| inner(&bytes)),
            End::Error("nested more than 64"),
        ),
        case("CVE-2025-32386: a bomb inside", inner(&gz(|out| zeros(out, 1024))), End::Error("")),
        case(
            "many bombs inside",
            with(|out| {
                let bomb = with(|out| {
                    (0..6).for_each(|n| {
                        entry(out, &format!("c/{n}"), EntryType::Regular, &vec![0; 5 << 20]);
                    });
                });
                (0..100).for_each(|n| {
                    entry(out, &format!("c/charts/d{n}.tgz"), EntryType::Regular, &bomb);
                });
            }),
            End::Error("packed too tightly"),
        ),
    ]
}

/// Names and links that lead out of the chart.
fn escaping() -> Vec<Case> {
    vec![
        named("c/../../x", "illegally references parent directory"),
        named("c//etc/passwd", "illegally contains absolute paths"),
        named("c/c:/windows/x", "illegally named files"),
        named("c\\..\\..\\x", "illegally references parent directory"),
        linked("CVE-2019-18658: a symbolic link", EntryType::Symlink),
        linked("CVE-2019-18658: a hard link", EntryType::Link),
        linked("a device", EntryType::Char),
        linked("a pipe", EntryType::Fifo),
    ]
}
