//! What is kept of a chart between renderings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::files::Files;
use super::templates::{Ahead, Source, Templates};
use crate::manifest::KnownHeads;
use crate::values::{Defaults, KeptSchemas, ReadyValues};
use crate::{Chart, Profile, RenderError};

/// A profile, the names of templates, and what they came to.
type Sets = Vec<(Profile, Vec<String>, Arc<Templates>)>;

/// What is kept of a chart between renderings.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// By profile, and by the charts that take part: conditions and aliases
    /// change which templates there are, and their names.
    sets: Mutex<Sets>,
    /// `.Files` of each chart, by its address in the tree.
    files: HashMap<usize, Files>,
    pub(super) defaults: Defaults,
    pub(super) schemas: KeptSchemas,
    pub(super) values: ReadyValues,
    pub(super) heads: KnownHeads,
}

/// More than any chart's conditions bring about in practice; beyond, sets are not kept.
const MAX_SETS: usize = 32;

impl Cache {
    pub(super) fn of(chart: &Chart) -> Self {
        let mut cache = Self {
            defaults: Defaults::of(chart),
            schemas: KeptSchemas::of(chart),
            ..Self::default()
        };
        cache.add_files(chart);
        cache
    }

    fn add_files(&mut self, chart: &Chart) {
        self.files.insert(address(chart), Files::of(chart));
        chart.dependencies.iter().for_each(|child| self.add_files(child));
    }

    /// What is shown of a chart as `.Files`.
    pub(super) fn files_of(&self, chart: &Chart) -> Files {
        self.files.get(&address(chart)).cloned().unwrap_or_default()
    }

    /// Whether no templates have been compiled yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.lock().is_empty()
    }

    /// The compiled templates of the charts that take part.
    pub(super) fn set(
        &self,
        sources: &[Source<'_>],
        profile: Profile,
        ahead: Ahead,
    ) -> Result<Arc<Templates>, RenderError> {
        let known = self.lock().iter().find_map(|(known, names, set)| {
            let same = *known == profile && names.iter().eq(sources.iter().map(|s| &s.name));
            same.then(|| set.clone())
        });
        if let Some(set) = known {
            return Ok(set);
        }
        let set = Arc::new(Templates::compile(sources, profile, ahead)?);
        let mut sets = self.lock();
        if sets.len() < MAX_SETS {
            let names = sources.iter().map(|source| source.name.clone()).collect();
            sets.push((profile, names, set.clone()));
        }
        Ok(set)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sets> {
        // Nothing can be half done under this lock.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chart does not move: it lies behind an `Arc`.
fn address(chart: &Chart) -> usize {
    std::ptr::from_ref(chart).addr()
}
