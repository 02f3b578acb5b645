//! `helm test`: the hooks that run when somebody asks for it.

use super::{Driver, Tested};
use crate::Error;
use crate::objects::Owner;
use crate::plan::History;
use crate::plan::hooks::{Event, Step, failed, forget, give_up, next_test, order, start};
use crate::record::Hook;

impl Driver {
    /// Runs the tests of the newest revision, one after the other, until one fails. The revision
    /// stays what it is; its hooks tell of their runs.
    ///
    /// Nothing is waited for: call again, with the history that [`Driver::history`] then gives. A run
    /// that was begun is gone on with, also after its process died, unless all that was left to do was
    /// to delete the objects of its tests: then the next call is another run.
    ///
    /// # Errors
    ///
    /// [`Error::NoRevision`]; [`Error::Waiting`] while a test is at work; [`Error::Hook`] if one fails.
    pub async fn test(
        &self,
        history: &mut History,
        which: impl Fn(&Hook) -> bool,
        owner: Option<&Owner>,
    ) -> Result<Tested, Error> {
        history.check_readable()?;
        let Some(newest) = history.newest().cloned() else {
            let name = history.name().to_owned();
            return Err(Error::NoRevision { name, revision: None });
        };
        let revision = newest.version;
        let mut tests = order(&newest.hooks, Event::Test);
        tests.retain(|index| newest.hooks.get(*index).is_some_and(&which));
        let goes_on = matches!(next_test(&newest, &tests), Step::Look(_));
        if let (false, Some(first)) = (goes_on, tests.first()) {
            self.rewrite(history, revision, |record| {
                forget(record, &tests);
                start(record, Event::Test, *first, self.clock.now());
            })
            .await?;
        }
        match self.run_tests(history, revision, &tests, owner, !goes_on).await {
            Ok(()) => {}
            Err(error @ Error::Hook { .. }) => {
                let record = self
                    .rewrite(history, revision, |record| give_up(record, self.clock.now()))
                    .await?;
                if !self.action_options.keep_tests {
                    self.clear_failed(&record, Event::Test).await;
                }
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        let release = history.newest().cloned().unwrap_or(newest);
        Ok(Tested { release, ran: tests.len() })
    }

    /// Tells what tests have printed and deletes their objects, both where the chart asks for it:
    /// what [`Driver::test`] does itself unless [`super::ActionOptions::keep_tests`] says not to.
    ///
    /// # Errors
    ///
    /// As those of any request.
    pub async fn clear_tests(
        &self,
        history: &History,
        which: impl Fn(&Hook) -> bool,
    ) -> Result<(), Error> {
        let Some(record) = history.newest() else { return Ok(()) };
        let mut tests = order(&record.hooks, Event::Test);
        tests.retain(|index| record.hooks.get(*index).is_some_and(&which));
        let is_failed = failed(record, Event::Test).iter().any(|index| tests.contains(index));
        match next_test(record, &tests) {
            Step::Clear(done) if !is_failed => {
                self.tell_succeeded(record, &tests).await;
                self.clear(record, Event::Test, &done).await
            }
            _ => {
                self.clear_failed(record, Event::Test).await;
                Ok(())
            }
        }
    }

    async fn run_tests(
        &self,
        history: &mut History,
        revision: u32,
        tests: &[usize],
        owner: Option<&Owner>,
        mut begun: bool,
    ) -> Result<(), Error> {
        loop {
            let Some(record) = history.revision(revision).cloned() else { return Ok(()) };
            match next_test(&record, tests) {
                Step::Look(index) => {
                    // In one write, or a process that dies between two tests would leave a run that
                    // looks like one that is over.
                    let is_left = |test: &usize| {
                        let hook = record.hooks.get(*test);
                        hook.is_some_and(|hook| hook.last_run.phase.is_empty())
                    };
                    let then = tests.iter().copied().find(is_left);
                    let which = (Event::Test, index);
                    self.attend(history, &record, which, owner, begun, then).await?;
                }
                Step::Start(index) => {
                    self.rewrite(history, revision, |record| {
                        start(record, Event::Test, index, self.clock.now());
                    })
                    .await?;
                }
                Step::Clear(_) if self.action_options.keep_tests => return Ok(()),
                Step::Clear(which) => {
                    if begun {
                        self.tell_succeeded(&record, tests).await;
                    }
                    return self.clear(&record, Event::Test, &which).await;
                }
                Step::Nothing => return Ok(()),
            }
            begun = true;
        }
    }
}
