//! What happens to a release before, and the action that is cut short.

use catamaran_chart::File;
use catamaran_release::{ActionOptions, Cascade, WaitStrategy};
use serde_json::{Value, json};

use crate::support::{DesiredRelease, config_map, deployment, hook, job, secret, service};
use crate::world::{Act, Doer, NAME, NAMESPACE};

/// One action, and what was done before it.
pub struct Story {
    pub name: &'static str,
    pub before: Vec<Doer>,
    pub last: Doer,
    /// How its last action ends.
    pub end: &'static str,
}

fn wish(objects: Vec<Value>, hooks: Vec<Value>) -> DesiredRelease {
    let mut wish = DesiredRelease::new(NAMESPACE, NAME, objects);
    wish.hooks = hooks;
    wish
}

fn kept(mut object: Value) -> Value {
    object["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep".into();
    object
}

/// Hooks of every event, of several weights and policies.
fn hooks() -> Vec<Value> {
    vec![
        hook(
            config_map("helper", "v"),
            "pre-install,pre-upgrade,pre-rollback",
            -5,
            "before-hook-creation,hook-succeeded",
        ),
        hook(job("before", 0), "pre-install,pre-upgrade,pre-rollback", 0, ""),
        hook(config_map("stays", "v"), "pre-install,pre-upgrade", 7, "hook-failed"),
        hook(job("after", 0), "post-install,post-upgrade,post-rollback", 0, "hook-succeeded"),
        hook(config_map("last", "v"), "post-install,post-delete", 1, "before-hook-creation"),
        hook(job("farewell", 0), "pre-delete", 0, "hook-succeeded"),
        hook(job("grave", 0), "post-delete", 0, "hook-succeeded,hook-failed"),
        hook(job("probe-a", 0), "test", 1, "hook-succeeded"),
        hook(job("probe-b", 0), "test", 2, ""),
    ]
}

fn first() -> DesiredRelease {
    let objects = vec![
        secret("a", "1"),
        config_map("b", "1"),
        kept(config_map("c", "1")),
        config_map("d", "1"),
        service("e"),
        deployment("f"),
    ];
    wish(objects, hooks())
}

/// Without `b` and `c`, with another `d`, and `g` besides.
fn second() -> DesiredRelease {
    let mut second = first();
    second.objects.drain(1..3);
    second.objects[1] = config_map("d", "2");
    second.objects.push(config_map("g", "2"));
    second
}

fn bare(mut wish: DesiredRelease) -> DesiredRelease {
    wish.hooks.clear();
    wish
}

fn failing(at: &str, policy: &str, mut wish: DesiredRelease) -> DesiredRelease {
    wish.hooks = vec![
        hook(config_map("helper", "v"), at, -1, "hook-succeeded"),
        hook(job("broken", 1), at, 0, policy),
    ];
    wish
}

fn does(act: Act) -> Doer {
    act.into()
}

fn reconciles(wish: DesiredRelease) -> Doer {
    Act::Reconcile(Box::new(wish)).into()
}

fn or_back(wish: DesiredRelease) -> Doer {
    Act::OrBack(Box::new(wish)).into()
}

fn by_hand(act: Act, action_options: ActionOptions) -> Doer {
    Doer { action_options, ..act.into() }
}

/// A definition of the chart's own, and an object of its kind.
fn with_definition() -> DesiredRelease {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    let thing = json!({
        "apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1},
    });
    let mut wish = wish(vec![config_map("a", "1"), thing], vec![]);
    let data = definition.to_string().into_bytes().into();
    wish.chart.files.push(File { name: "crds/things.yaml".into(), data });
    wish
}

/// A release whose record is cut into pieces: noise in its chart, kept in full.
pub fn large() -> Vec<Story> {
    let with_noise = |mut wish: DesiredRelease| {
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        });
        let data: Vec<u8> = noise.take(850_000).collect();
        wish.chart.files.push(File { name: "noise".into(), data: data.into() });
        wish
    };
    let full = |wish: DesiredRelease| {
        let action_options = ActionOptions { full_record: true, ..ActionOptions::default() };
        by_hand(Act::Reconcile(Box::new(with_noise(wish))), action_options)
    };
    let small = |value| bare(wish(vec![config_map("a", value)], vec![]));
    vec![
        story("install, in pieces", vec![], full(small("1"))),
        story("upgrade, in pieces", vec![full(small("1"))], full(small("2"))),
        story("uninstall, in pieces", vec![full(small("1"))], does(Act::Leave)),
    ]
}

/// Every action, in every shape.
pub fn all() -> Vec<Story> {
    let mut all = actions();
    all.extend(by_hand_and_failing());
    all
}

fn story(name: &'static str, before: Vec<Doer>, last: Doer) -> Story {
    Story { name, before, last, end: "done" }
}

fn actions() -> Vec<Story> {
    let installed = || vec![reconciles(first())];
    let upgraded = || vec![reconciles(first()), reconciles(second())];
    let few = |doer: Doer| Doer { history_max: 2, ..doer };
    vec![
        story("install", vec![], reconciles(first())),
        story("install, no hooks", vec![], reconciles(bare(first()))),
        story("install with a definition", vec![], reconciles(with_definition())),
        story("upgrade", installed(), reconciles(second())),
        story("upgrade, no hooks", vec![reconciles(bare(first()))], reconciles(bare(second()))),
        story("upgrade, and forget", upgraded(), few(reconciles(first()))),
        story("rollback", upgraded(), does(Act::RollBack(1))),
        story("tests", installed(), does(Act::Test("probe-"))),
        story("uninstall", upgraded(), does(Act::Leave)),
        story("uninstall, no hooks", vec![reconciles(bare(first()))], does(Act::Leave)),
    ]
}

fn by_hand_and_failing() -> Vec<Story> {
    let waits = || ActionOptions { wait: WaitStrategy::Jobs, ..ActionOptions::default() };
    let keeps = || ActionOptions { keep_history: true, cascade: Cascade::Foreground, ..waits() };
    let installed = || vec![reconciles(first())];
    let gone = || vec![reconciles(first()), by_hand(Act::Leave, keeps())];
    let broken = |at, policy| reconciles(failing(at, policy, first()));
    let failed = |name, before, last, end| Story { name, before, last, end };
    vec![
        story("install and wait", vec![], by_hand(Act::Reconcile(Box::new(first())), waits())),
        story("uninstall, wait and keep the history", installed(), by_hand(Act::Leave, keeps())),
        story("install over an uninstalled history", gone(), reconciles(first())),
        story("rollback after an uninstall", gone(), by_hand(Act::RollBack(1), waits())),
        story(
            "another wish after a failed install",
            vec![broken("pre-install", "")],
            reconciles(bare(first())),
        ),
        story(
            "uninstall after a failed upgrade",
            vec![reconciles(bare(first())), reconciles(failing("pre-upgrade", "", second()))],
            does(Act::Leave),
        ),
        story(
            "rollback on failure",
            vec![reconciles(bare(first()))],
            or_back(failing("post-upgrade", "", second())),
        ),
        story(
            "rollback on failure, with hooks",
            vec![reconciles(first())],
            or_back(failing("pre-upgrade", "hook-failed", second())),
        ),
        story("uninstall on failure", vec![], or_back(failing("post-install", "", first()))),
        failed(
            "a failing pre-install hook",
            vec![],
            broken("pre-install", "hook-failed"),
            "failed pre-install: Job \"broken\" in namespace \"shop\": Job has reached the specified backoff limit (BackoffLimitExceeded)",
        ),
        failed(
            "a failing post-upgrade hook",
            vec![reconciles(bare(first()))],
            reconciles(failing("post-upgrade", "", second())),
            "post-upgrade hooks failed: Job \"broken\" in namespace \"shop\": Job has reached the specified backoff limit (BackoffLimitExceeded)",
        ),
        failed(
            "a failing pre-delete hook",
            vec![broken("pre-delete", "before-hook-creation")],
            does(Act::Leave),
            "pre-delete hooks failed: Job \"broken\" in namespace \"shop\": Job has reached the specified backoff limit (BackoffLimitExceeded)",
        ),
    ]
}
