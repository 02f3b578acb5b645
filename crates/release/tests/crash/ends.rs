//! Every crash point of every action, and every two of them.

use std::thread;

use catamaran_apimodel::Model;

use crate::fate::{Deed, End, Fate};
use crate::stories::{Story, all, large};
use crate::world::{Act, Doer, State, model, state, writes};

/// Runs it under a fate; whether it came to its own end.
async fn cut_short(model: &Model, doer: &Doer, at: usize, end: End) -> bool {
    let fate = Fate::new(at, Deed::End(end));
    tokio::select! {
        biased;
        _ = doer.run(model, fate.client(model)) => {}
        () = fate.died.notified() => {}
    }
    !fate.struck()
}

/// A story of which only the last action is left.
struct Begun {
    story: Story,
    model: Model,
    /// What comes of it when nothing is in its way.
    sound: Model,
    expected: State,
    /// How many requests were made before.
    skip: usize,
}

impl Begun {
    async fn new(story: Story) -> Self {
        let model = model();
        for doer in &story.before {
            doer.settle(&model).await;
            model.pass(60);
        }
        let sound = model.fork();
        assert_eq!(story.last.settle(&sound).await, story.end, "{}", story.name);
        let (expected, skip) = (state(&sound).await, model.served().len());
        Self { story, model, sound, expected, skip }
    }

    /// Cuts the action short, so often, and does it again: what is not as it shall be then, or `None` if
    /// it came to its end before.
    async fn live(&self, ends: &[(usize, End)]) -> Option<Vec<String>> {
        let (model, last) = (self.model.fork(), &self.story.last);
        // Who finds no release installs again what the life before has taken away.
        let mut repeats = self.story.end != "done"
            || matches!(last.act, Act::OrBack(_))
            || self.story.name.ends_with("in pieces");
        for (at, end) in ends {
            if cut_short(&model, last, *at, *end).await {
                return None;
            }
            repeats |= matches!(last.act, Act::Test(_)) && tests_are_done(&model).await;
        }
        let said = last.settle(&model).await;
        let mut wrong = self.wrong(&state(&model).await);
        if said != self.story.end {
            wrong.insert(0, said);
        }
        if !repeats {
            wrong.extend(self.wrong_writes(&model));
        }
        let told = format!("{}, {ends:?}", self.story.name);
        Some(wrong.into_iter().map(|wrong| format!("{told}: {wrong}")).collect())
    }

    fn wrong(&self, found: &State) -> Vec<String> {
        let mut wrong = Vec::new();
        if found.history != self.expected.history {
            wrong.push(format!("history {:?}, and not {:?}", found.history, self.expected.history));
        }
        let (is, shall) = (&found.objects, &self.expected.objects);
        for name in is.keys().chain(shall.keys().filter(|name| !is.contains_key(*name))) {
            if is.get(name) != shall.get(name) {
                wrong.push(format!("{name}: {:?}, and not {:?}", is.get(name), shall.get(name)));
            }
        }
        wrong
    }

    /// What was created or deleted more often, or more seldom, than without the end.
    fn wrong_writes(&self, found: &Model) -> Vec<String> {
        let (is, shall) = (writes(found, self.skip), writes(&self.sound, self.skip));
        let all = is.keys().chain(shall.keys().filter(|path| !is.contains_key(*path)));
        all.filter(|path| is.get(*path) != shall.get(*path))
            .map(|path| format!("{path}: {:?}, and not {:?}", is.get(path), shall.get(path)))
            .collect()
    }
}

/// Whether the tests of a run are all done. Nobody can tell then a call that goes on with it from one that
/// asks for another.
async fn tests_are_done(model: &Model) -> bool {
    let history = state(model).await.history;
    let hooks = history.last().map(|(.., hooks)| hooks.clone()).unwrap_or_default();
    hooks
        .iter()
        .filter(|(name, _)| name.starts_with("probe-"))
        .all(|(_, phase)| phase == "Succeeded")
}

/// Runs a check on each story, several at once; what it finds wrong, and how many lives it saw.
fn on_all<F: Future<Output = (usize, Vec<String>)>>(
    stories: Vec<Story>,
    check: impl Fn(Begun) -> F + Sync,
) -> usize {
    let results: Vec<(usize, Vec<String>)> = thread::scope(|scope| {
        let threads: Vec<_> = stories
            .into_iter()
            .map(|story| {
                let check = &check;
                scope.spawn(move || {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_time().build();
                    runtime
                        .expect("a runtime")
                        .block_on(async { check(Begun::new(story).await).await })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a story")).collect()
    });
    let lives = results.iter().map(|(lives, _)| lives).sum();
    let wrong: Vec<&String> = results.iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{} things in {lives} lives:\n{wrong:#?}", wrong.len());
    lives
}

#[test]
fn every_action_cut_short_anywhere_comes_to_the_same_end() {
    let lives = on_all(all(), async |begun| {
        let (mut lives, mut wrong) = (0, Vec::new());
        for end in End::ALL {
            let mut at = 1;
            while let Some(found) = begun.live(&[(at, end)]).await {
                wrong.extend(found);
                (lives, at) = (lives + 1, at + 1);
            }
            assert!(at > 2, "{}: an action without writes", begun.story.name);
        }
        (lives, wrong)
    });
    assert!(lives > 1000, "{lives} lives");
}

#[test]
fn so_does_one_whose_record_is_in_pieces() {
    let lives = on_all(large(), async |begun| {
        let (mut lives, mut wrong) = (0, Vec::new());
        // Each life packs a large record some times over: by turns one end or the other.
        for (at, end) in (1..).zip([End::KilledAfter, End::AnswerLost].into_iter().cycle()) {
            let Some(found) = begun.live(&[(at, end)]).await else { break };
            wrong.extend(found);
            lives += 1;
        }
        let pieces = begun.sound.objects("secrets").len();
        assert!(begun.story.name.starts_with("uninstall") == (pieces == 0), "{pieces}");
        (lives, wrong)
    });
    assert!(lives > 12, "{lives} lives");
}

#[test]
fn so_does_one_cut_short_twice() {
    let lives = on_all(
        all()
            .into_iter()
            .filter(|story| matches!(story.name, "rollback" | "uninstall" | "upgrade, no hooks"))
            .collect(),
        async |begun| {
            let (mut lives, mut wrong) = (0, Vec::new());
            for (first, second) in
                [(End::KilledAfter, End::KilledAfter), (End::AnswerLost, End::KilledBefore)]
            {
                for one in (1..).step_by(2) {
                    let mut other = 1;
                    while let Some(found) = begun.live(&[(one, first), (other, second)]).await {
                        wrong.extend(found);
                        (lives, other) = (lives + 1, other + 2);
                    }
                    if other == 1 {
                        break;
                    }
                }
            }
            (lives, wrong)
        },
    );
    assert!(lives > 200, "{lives} lives");
}
