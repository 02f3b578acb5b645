//! `conformance generate`: many cases, by several workers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use catamaran_chart::Profile;

use crate::case::Case;
use crate::compare::{Verdict, compare};
use crate::generate::{Generated, Library, generate};
use crate::oracle::Oracle;
use crate::ours;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::shrink::{Difference, shrink};

/// Cases are rendered on threads of our own; they get the stack that a main thread has.
const STACK: usize = 8 << 20;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The folder of the pinned tools, oracles among them.
    pub tools: PathBuf,
    /// The numbers of the first case and of the one after the last.
    pub cases: std::ops::Range<u64>,
    /// What all follows from.
    pub seed: u64,
    /// Threads, each with oracles of its own.
    pub workers: usize,
    /// How many kinds of differences are shrunk and shown.
    pub show: usize,
}

/// A difference that was found, and how often its like was.
#[derive(Debug)]
pub struct Finding {
    /// The number of the case.
    pub number: u64,
    /// What the case is about.
    pub kind: &'static str,
    /// Shrunk.
    pub difference: Difference,
    /// Cases of the same kind.
    pub count: u64,
}

struct Worker<'a> {
    plan: &'a Plan,
    library: &'a Library,
    oracles: [Oracle; 2],
    report: Report,
    findings: BTreeMap<String, Finding>,
}

/// Both Helms.
pub fn oracles(tools: &Path) -> [Oracle; 2] {
    [Oracle::new(tools, Profile::Helm43), Oracle::new(tools, Profile::Helm318)]
}

/// Runs all cases.
pub fn run(plan: &Plan) -> Result<(Report, Vec<Finding>)> {
    // A panic of ours is a finding, and told as such.
    std::panic::set_hook(Box::new(|_| {}));
    let library = Library::new();
    let next = AtomicU64::new(plan.cases.start);
    let mut report = Report::new(plan.seed);
    let mut findings: BTreeMap<String, Finding> = BTreeMap::new();
    let results = thread::scope(|scope| {
        let (library, next) = (&library, &next);
        let spawn = |_| {
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, move || work(plan, library, next))
        };
        let workers = (0..plan.workers.max(1)).map(spawn).collect::<Result<Vec<_>, _>>()?;
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().map_err(|_| anyhow!("a worker panicked"))?
        };
        workers.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    for (counted, found) in results {
        report.merge(counted);
        for (signature, finding) in found {
            match findings.get_mut(&signature) {
                Some(known) => known.count += finding.count,
                None => drop(findings.insert(signature, finding)),
            }
        }
    }
    Ok((report, findings.into_values().collect()))
}

fn work(
    plan: &Plan,
    library: &Library,
    next: &AtomicU64,
) -> Result<(Report, BTreeMap<String, Finding>)> {
    let mut worker = Worker {
        plan,
        library,
        oracles: oracles(&plan.tools),
        report: Report::new(plan.seed),
        findings: BTreeMap::new(),
    };
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= plan.cases.end {
            return Ok((worker.report, worker.findings));
        }
        worker.one(number)?;
    }
}

impl Worker<'_> {
    fn one(&mut self, number: u64) -> Result<()> {
        let Generated { case, probe, kind } = generate(self.library, self.plan.seed, number);
        let (theirs, ours) = self.render(&case)?;
        match compare(&case, &theirs, &ours) {
            Verdict::Equal => self.report.count(probe.as_ref(), &ours),
            Verdict::Allowed(_) => {
                self.report.cases += 1;
                self.report.crashed += u64::from(matches!(theirs, Outcome::Crash(_)));
            }
            Verdict::Different => {
                self.report.cases += 1;
                self.report.different += 1;
                let about = probe.as_ref().map_or(kind, |probe| probe.name);
                self.found(number, about, Difference { case, theirs, ours })
                    .with_context(|| format!("case {number}"))?;
            }
        }
        Ok(())
    }

    fn render(&mut self, case: &Case) -> Result<(Outcome, Outcome)> {
        let oracle = oracle(&mut self.oracles, case.profile);
        oracle.ask(case)?;
        let ours = ours::render(case);
        Ok((oracle.answer()?, ours))
    }

    fn found(&mut self, number: u64, kind: &'static str, difference: Difference) -> Result<()> {
        // Successes that differ have nothing else to be told apart by.
        let signature = if difference.theirs.is_success() && difference.ours.is_success() {
            format!("success of {kind}")
        } else {
            difference.signature()
        };
        if let Some(known) = self.findings.get_mut(&signature) {
            known.count += 1;
            return Ok(());
        }
        let oracle = oracle(&mut self.oracles, difference.case.profile);
        let difference = if self.findings.len() < self.plan.show {
            shrink(oracle, difference)?
        } else {
            difference
        };
        self.findings.insert(signature, Finding { number, kind, difference, count: 1 });
        Ok(())
    }
}

/// The one of a profile.
pub fn oracle(oracles: &mut [Oracle; 2], profile: Profile) -> &mut Oracle {
    let [helm43, helm318] = oracles;
    match profile {
        Profile::Helm43 => helm43,
        Profile::Helm318 => helm318,
    }
}
