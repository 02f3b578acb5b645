//! Archives as no tool would write them.

use std::io::Write as _;

use arbitrary::{Arbitrary, Result, Unstructured};
use catamaran_chart::{Chart, load::MAX_CHART_BYTES};
use flate2::{Compression, write::GzEncoder};

const NAMES: &[&str] = &[
    "c/Chart.yaml",
    "c/values.yaml",
    "c/values.schema.json",
    "c/templates/a.yaml",
    "c/templates/_h.tpl",
    "c/charts/s/Chart.yaml",
    "c/charts/s/values.yaml",
    "c/charts/s-1.tgz",
    "c/charts/_x/Chart.yaml",
    "c/crds/a.yaml",
    "c/.helmignore",
    "c/requirements.yaml",
    "c/Chart.lock",
    "c/../x",
    "/etc/passwd",
    "c//etc/passwd",
    "c\\templates\\b.yaml",
    "c/c:/x",
    "Chart.yaml",
    "c",
    "c/",
    "",
    "./c/Chart.yaml",
    "c/./a/../b",
    "c/charts/s/charts/t/charts/u/Chart.yaml",
    "d/Chart.yaml",
    "c/templates/",
    "c/charts/s/../../../x",
];
const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// One entry, with a header that may lie.
#[derive(Debug)]
struct Entry {
    name: Vec<u8>,
    kind: u8,
    link: Vec<u8>,
    data: Vec<u8>,
    size: Size,
    numbers: [u8; 24],
    good_sum: bool,
    magic: u8,
}

#[derive(Debug)]
enum Size {
    True,
    Octal(u64),
    Binary(u64),
    Raw([u8; 12]),
}

impl<'a> Arbitrary<'a> for Entry {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let name =
            if u.ratio(7, 8)? { u.choose(NAMES)?.as_bytes().to_vec() } else { u.arbitrary()? };
        let data = match u.int_in_range(0..=3)? {
            0 => CHART.into(),
            1 => u.arbitrary()?,
            2 => b"11 path=c/x\n30 path=c/templates/b.yaml\n".to_vec(),
            _ => u.choose(NAMES)?.as_bytes().to_vec(),
        };
        Ok(Self {
            name,
            kind: *u.choose(b"0000\x0001234567LKxgXSVDMN")?,
            link: u.choose(NAMES)?.as_bytes().to_vec(),
            data,
            size: match u.int_in_range(0..=5)? {
                0 => Size::Octal(u.arbitrary()?),
                1 => Size::Binary(u.arbitrary()?),
                2 => Size::Raw(u.arbitrary()?),
                _ => Size::True,
            },
            numbers: if u.ratio(1, 8)? {
                u.arbitrary()?
            } else {
                *b"0000644\x000000000\x000000000\x00"
            },
            good_sum: u.ratio(15, 16)?,
            magic: u.int_in_range(0..=3)?,
        })
    }
}

impl Entry {
    fn write(&self, out: &mut Vec<u8>) {
        let mut header = [0; 512];
        put(&mut header[..100], &self.name);
        put(&mut header[100..124], &self.numbers);
        let size = self.data.len() as u64;
        match self.size {
            Size::True => put(&mut header[124..136], format!("{size:011o}").as_bytes()),
            Size::Octal(size) => put(&mut header[124..136], format!("{size:o}").as_bytes()),
            Size::Binary(size) => {
                header[124] = 0x80;
                header[128..136].copy_from_slice(&size.to_be_bytes());
            }
            Size::Raw(raw) => header[124..136].copy_from_slice(&raw),
        }
        put(&mut header[136..148], b"00000000000");
        header[148..156].fill(b' ');
        header[156] = self.kind;
        put(&mut header[157..257], &self.link);
        match self.magic {
            0 => {}
            1 => put(&mut header[257..265], b"ustar  "),
            _ => put(&mut header[257..265], b"ustar\x0000"),
        }
        if self.magic == 3 {
            put(&mut header[345..500], &self.link);
        }
        let sum: u32 =
            header.iter().map(|byte| u32::from(*byte)).sum::<u32>() + u32::from(!self.good_sum);
        put(&mut header[148..156], format!("{sum:06o}\0 ").as_bytes());
        out.extend(header);
        out.extend(&self.data);
        out.resize(out.len().next_multiple_of(512), 0);
    }
}

fn put(field: &mut [u8], data: &[u8]) {
    let length = data.len().min(field.len());
    field[..length].copy_from_slice(&data[..length]);
}

/// A packed archive, sometimes cut short, of several members, or with a tail.
#[derive(Debug)]
pub struct Odd(pub Vec<u8>);

impl<'a> Arbitrary<'a> for Odd {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut tar = Vec::new();
        let count = u.int_in_range(0..=8)?;
        if u.ratio(3, 4)? {
            let name = b"c/Chart.yaml".to_vec();
            let (kind, link, data, size) = (b'0', Vec::new(), CHART.into(), Size::True);
            let numbers = *b"0000644\x000000000\x000000000\x00";
            Entry { name, kind, link, data, size, numbers, good_sum: true, magic: 2 }
                .write(&mut tar);
        }
        for _ in 0..count {
            u.arbitrary::<Entry>()?.write(&mut tar);
        }
        if u.ratio(7, 8)? {
            tar.resize(tar.len() + 1024, 0);
        }
        let at = if u.ratio(1, 4)? { u.int_in_range(0..=tar.len())? } else { tar.len() };
        let (first, second) = tar.split_at(at);
        let mut packed = pack(first);
        if u.arbitrary()? {
            packed.extend(pack(second));
        }
        if u.ratio(1, 8)? {
            packed.truncate(u.int_in_range(0..=packed.len())?);
        }
        if u.ratio(1, 8)? {
            packed.extend(u.arbitrary::<Vec<u8>>()?);
        }
        if u.ratio(1, 8)? && !packed.is_empty() {
            let at = u.choose_index(packed.len())?;
            packed[at] ^= 1 << u.int_in_range(0..=7)?;
        }
        Ok(Self(packed))
    }
}

/// Bytes in gzip.
pub fn pack(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Asserts what holds of every chart that was read from an archive.
pub fn check(chart: &Chart) {
    assert!(bytes_of(chart) <= MAX_CHART_BYTES, "a chart is bounded");
    assert!(!chart.name().is_empty(), "a chart has a name");
    for file in chart.templates.iter().chain(&chart.files) {
        let inside = !file.name.starts_with('/') && file.name.split('/').all(|part| part != "..");
        assert!(inside, "{:?} is inside the chart", file.name);
        assert!(!file.name.is_empty(), "a file has a name");
    }
    assert!(chart.templates.iter().all(|file| file.name.starts_with("templates/")));
    chart.dependencies.iter().for_each(check);
}

fn bytes_of(chart: &Chart) -> u64 {
    let own =
        chart.templates.iter().chain(&chart.files).map(|file| file.data.len() as u64).sum::<u64>();
    own + chart.dependencies.iter().map(bytes_of).sum::<u64>()
}
