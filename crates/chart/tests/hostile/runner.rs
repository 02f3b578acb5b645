//! Renders charts in processes of their own and watches what they take.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use catamaran_chart::{
    Budget, Capabilities, Chart, Lookups, Profile, ReleaseFacts, RenderError, RenderInput,
};

use crate::case::{Case, End, Input};

/// Where the child finds its chart.
const PLACE: &str = "CATAMARAN_HOSTILE_CHART";
/// What a hostile chart may take more than an innocent one, in KiB.
const EXTRA: i64 = 64 << 10;
/// When a child is given up. Generous: the machine may be busy with other things.
const DEADLINE: Duration = Duration::from_mins(3);

/// Runs a case; the error tells what is wrong.
pub fn run(case: &Case) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let chart = lay_out(folder.path(), &case.input);
    let report = render_apart(&chart);
    let innocent = tempfile::tempdir().unwrap();
    let base = render_apart(&lay_out(innocent.path(), &innocent_twin(&case.input)));
    let fail = |what: &str| Err(format!("{}: {what}; it said: {}", case.name, report.said));
    if !report.ended {
        return fail("did not end");
    }
    let (said, extra) = (&report.said, report.peak - base.peak);
    if std::env::var_os("HOSTILE_VERBOSE").is_some() {
        let shown: String = said.chars().take(150).collect();
        eprintln!("{extra:>7} KiB {:>6} ms  {}: {shown}", report.processor, case.name);
    }
    let right = match &case.end {
        End::Error(text) => said.starts_with("error ") && said.contains(text),
        End::Limit(text, at) => {
            said.starts_with("limit ") && said.contains(text) && said.contains(at)
        }
        End::Prints(text) => said.starts_with("printed ") && said.contains(text),
        End::Somehow => said.contains(' '),
    };
    if !right {
        return fail("ended otherwise");
    }
    if extra > EXTRA {
        return fail(&format!("took {extra} KiB more than an innocent chart"));
    }
    Ok(())
}

fn lay_out(folder: &Path, input: &Input) -> PathBuf {
    let chart = folder.join("chart");
    match input {
        Input::Archive(bytes) => {
            let chart = folder.join("chart.tgz");
            fs::write(&chart, bytes).unwrap();
            return chart;
        }
        Input::Folder(files) | Input::Made(files, _) => {
            for (path, content) in files {
                let path = chart.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
        }
    }
    if let Input::Made(_, finish) = input {
        finish(&chart);
    }
    chart
}

/// A chart with as many files of the same lengths that does nothing.
fn innocent_twin(input: &Input) -> Input {
    let sound = |path: &str, length: usize| match path {
        "Chart.yaml" => crate::case::chart_yaml().1,
        _ => b"# innocent text\n".iter().copied().cycle().take(length).collect(),
    };
    match input {
        Input::Archive(packed) => {
            let noise: Vec<u8> = (0_u64..)
                .flat_map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes())
                .take(packed.len())
                .collect();
            Input::Archive(crate::archives::packed(&[
                ("c/Chart.yaml", &crate::case::chart_yaml().1),
                ("c/noise", noise.get(..noise.len().min(5 << 20)).unwrap()),
            ]))
        }
        Input::Folder(files) | Input::Made(files, _) => Input::Folder(
            files
                .iter()
                .filter(|(path, _)| path.matches('/').count() < 64)
                .map(|(path, content)| (path.clone(), sound(path, content.len())))
                .collect(),
        ),
    }
}

struct Report {
    ended: bool,
    /// `error …`, `limit …` or `printed …`.
    said: String,
    /// The most memory it ever had, in KiB.
    peak: i64,
    /// The time of a processor that it took, in milliseconds.
    processor: i64,
}

fn render_apart(chart: &Path) -> Report {
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, chart)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let mut ended = false;
    while start.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait().unwrap() {
            ended = status.success();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Does nothing to a child that has ended.
    let _ = child.kill();
    let _ = child.wait();
    let text = reader.join().unwrap().unwrap_or_default();
    let line = |mark: &str| text.lines().find_map(|line| Some(line.split_once(mark)?.1.to_owned()));
    let said = line("HOSTILE said ").unwrap_or_default();
    let number = |mark| line(mark).and_then(|number| number.parse().ok()).unwrap_or_default();
    let (peak, processor) = (number("HOSTILE peak "), number("HOSTILE processor "));
    Report { ended: ended && !said.is_empty(), said, peak, processor }
}

/// Renders the chart it is told, and tells how that went.
pub fn child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let said = render(Path::new(&place)).replace('\n', " ");
    let said: String = said.chars().take(4000).collect();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    // Of the user and of the kernel, in hundredths of a second; the name before them ends with `)`.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
    let processor: i64 = fields.map(|ticks| ticks.parse::<i64>().unwrap() * 10).sum();
    let mut report = String::new();
    writeln!(report, "\nHOSTILE said {said}").unwrap();
    writeln!(report, "HOSTILE peak {}", peak.trim().trim_end_matches(" kB")).unwrap();
    writeln!(report, "HOSTILE processor {processor}").unwrap();
    print!("{report}");
}

fn render(chart: &Path) -> String {
    let chart = match Chart::load(chart) {
        Ok(chart) => chart,
        Err(error) => return format!("error {error}"),
    };
    let compiled = chart.compile();
    let release =
        ReleaseFacts { name: "r".into(), namespace: "n".into(), revision: 1, is_install: true };
    // Without optimisation a step takes ten times as long.
    let default = Budget::default();
    let steps = if cfg!(debug_assertions) { default.steps / 10 } else { default.steps };
    let keys = if cfg!(debug_assertions) { 2 } else { default.keys };
    let rendered = compiled.and_then(|chart| {
        chart.render(&RenderInput {
            values: &serde_json::Map::new(),
            release: &release,
            capabilities: &Capabilities::offline(Profile::Helm43),
            profile: Profile::Helm43,
            lookups: &Lookups::offline(),
            clock: SystemTime::UNIX_EPOCH,
            seed: 1.into(),
            random_overrides: None,
            budget: Budget { steps, keys, ..default },
        })
    });
    match rendered {
        Ok(rendered) => format!("printed {}", rendered.template_text()),
        Err(RenderError::Budget { text, at }) => format!("limit {at}: {text}"),
        Err(error) => format!("error {}", error.text(Profile::Helm43)),
    }
}
