//! Every crash point of every action.

use catamaran_apimodel::Model;

use crate::fate::{Deed, End, Fate};
use crate::stories::{Story, all};
use crate::world::{Doer, State, model, state, writes};

/// Runs it under a fate; whether it came to its own end.
async fn cut_short(model: &Model, doer: &Doer, at: usize, end: End) -> bool {
    let fate = Fate::new(at, Deed::End(end));
    tokio::select! {
        biased;
        result = doer.run(model, fate.client(model)) => {
            if let (Err(error), true) = (&result, fate.struck()) {
                assert!(error.is_transient() == error.is_stale() || !error.is_transient(), "{error}");
            }
        }
        () = fate.died.notified() => {}
    }
    !fate.struck()
}

/// A story up to its last action.
async fn begun(story: &Story) -> Model {
    let model = model();
    for doer in &story.before {
        doer.settle(&model).await;
    }
    model
}

/// Whether hooks may run once more than without the crash: one that has failed, where the crash came
/// after that was written.
fn may_repeat(story: &Story) -> bool {
    story.end != "done"
}

fn check(
    story: &Story,
    told: &str,
    expected: (&State, &Model),
    model: (&State, &Model),
    skip: usize,
) {
    let name = story.name;
    assert_eq!(model.0.history, expected.0.history, "{name}, {told}: the history");
    let (is, shall) = (&model.0.objects, &expected.0.objects);
    let names = |state: &State| state.objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(model.0), names(expected.0), "{name}, {told}: the objects");
    for (object, shall) in shall {
        assert_eq!(&is[object], shall, "{name}, {told}: {object}");
    }
    let (is, shall) = (writes(model.1, skip), writes(expected.1, skip));
    if may_repeat(story) {
        return;
    }
    let differs = |(path, counted): (&String, &(usize, usize))| {
        let shall = shall.get(path).copied().unwrap_or_default();
        (*counted != shall).then(|| format!("{path}: {counted:?}, and not {shall:?}"))
    };
    let wrong: Vec<String> = is.iter().filter_map(differs).collect();
    assert!(wrong.is_empty(), "{name}, {told}: created and deleted: {wrong:?}");
}

#[tokio::test]
async fn every_action_cut_short_anywhere_comes_to_the_same_end() {
    let mut lives = 0;
    for story in all() {
        let begin = begun(&story).await;
        let skip = begin.served().len();
        let sound = begin.fork();
        assert_eq!(story.last.settle(&sound).await, story.end, "{}", story.name);
        let expected = state(&sound).await;
        for end in End::ALL {
            for at in 1.. {
                let model = begin.fork();
                let whole = cut_short(&model, &story.last, at, end).await;
                if whole {
                    assert!(at > 2, "{}: an action without writes", story.name);
                    break;
                }
                lives += 1;
                let told = format!("write {at}, {end:?}");
                assert_eq!(story.last.settle(&model).await, story.end, "{}, {told}", story.name);
                check(&story, &told, (&expected, &sound), (&state(&model).await, &model), skip);
            }
        }
    }
    assert!(lives > 500, "{lives} lives");
}
