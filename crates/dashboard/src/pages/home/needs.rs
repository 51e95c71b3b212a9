//! What waits for a person, each with the way to where it is mended. What the visitor may not see is left out.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::activity::Failing;
use crate::pages::connections::{self, Connection};
use crate::path::Path;
use crate::ui::{Markup, Tone, badge, folded};
use crate::visit::Visit;

/// How many of a kind are asked for; where there are more, the page says so.
const ASKED: usize = 20;
/// How many of a kind are shown here; the rest is one link away.
const SHOWN: usize = 5;
/// What died or changed before is no news.
const NEWS: SignedDuration = SignedDuration::from_hours(7 * 24);
const NEWS_WORD: &str = "7d";
/// Reasons longer than this are folded.
const REASON: usize = 160;
/// A project with fewer calls is still being set up.
const EARLY: usize = 10;

/// Everything that needs somebody.
#[derive(Debug)]
pub(super) struct Needs {
    pub(super) all: Vec<Need>,
    /// How many approvals wait.
    pub(super) approvals: usize,
    /// Whether the project has nothing in it yet.
    pub(super) is_new: bool,
    /// What is done already of what a new project needs; nothing once it is well under way.
    pub(super) progress: Option<Progress>,
    /// Whether the visitor may see nothing of this.
    pub(super) is_hidden: bool,
}

/// Things of one kind that need somebody.
#[derive(Debug)]
pub(super) struct Need {
    pub(super) title: &'static str,
    pub(super) count: Markup,
    pub(super) things: Vec<Thing>,
    /// Where all of them are, and what that place is called.
    pub(super) all: (String, &'static str),
}

#[derive(Debug)]
pub(super) struct Thing {
    pub(super) href: String,
    pub(super) name: String,
    pub(super) reason: Option<Markup>,
    pub(super) at: Option<String>,
}

impl Need {
    fn new(title: &'static str, tone: Tone, things: Vec<Thing>, has_more: bool, all: (Path, &'static str)) -> Option<Self> {
        let count = badge(tone, &format!("{}{}", things.len(), if has_more { "+" } else { "" }));
        let shown = things.into_iter().take(SHOWN).collect::<Vec<_>>();
        (!shown.is_empty()).then(|| Self { title, count, things: shown, all: (all.0.into(), all.1) })
    }
}

#[derive(Debug, Deserialize)]
struct Approvals {
    approvals: Vec<Approval>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Approval {
    id: String,
    call_ref: String,
    created_at: String,
}

#[derive(Debug, Deserialize)]
struct Status {
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Deliveries {
    deliveries: Vec<Delivery>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delivery {
    id: String,
    trigger_name: Option<String>,
    workflow: Option<String>,
    status: Status,
    updated_at: String,
}

#[derive(Debug, Deserialize)]
struct Imports {
    imports: Vec<Import>,
}

#[derive(Debug, Deserialize)]
struct Import {
    id: String,
    name: String,
    version: i64,
    updated_at: String,
}

impl Import {
    fn is_changed(&self, now: Timestamp) -> bool {
        let age = self.updated_at.parse::<Timestamp>().map(|at| now.duration_since(at));
        self.version > 1 && age.is_ok_and(|age| age < NEWS)
    }
}

#[derive(Debug, Deserialize)]
struct Calls {
    count: usize,
}

/// What a new project gets, step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Connection,
    Call,
    Rule,
    Trigger,
}

/// The first steps that are not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress(Vec<Step>);

impl Progress {
    pub(super) fn has_connection(&self) -> bool {
        !self.0.contains(&Step::Connection)
    }

    pub(super) fn has_call(&self) -> bool {
        !self.0.contains(&Step::Call)
    }

    pub(super) fn has_rule(&self) -> bool {
        !self.0.contains(&Step::Rule)
    }

    pub(super) fn has_trigger(&self) -> bool {
        !self.0.contains(&Step::Trigger)
    }
}

/// Whether the project has rules, and whether something starts its workflows; asked for only while it is being set up.
#[derive(Clone, Copy, Debug, Default)]
struct Setup {
    has_rule: bool,
    has_trigger: bool,
}

async fn setup(visit: &Visit) -> Setup {
    let one = json!({"windowing": {"limit": 1}});
    let (policy, subscriptions, schedules): (Option<Value>, Option<Value>, Option<Value>) = tokio::join!(
        list(visit, Path::new("/tools/permissions")),
        async { visit.post("/triggers/subscriptions/query", one.clone()).await.ok() },
        async { visit.post("/triggers/schedules/query", one.clone()).await.ok() },
    );
    let has = |answer: &Option<Value>| answer.as_ref().is_some_and(|answer| answer["count"].as_u64() > Some(0));
    let policy = policy.unwrap_or_default();
    let has_rules = policy["permissions"]["rules"].as_array().is_some_and(|rules| !rules.is_empty());
    Setup { has_rule: has_rules || policy["permissions"]["default"].is_string(), has_trigger: has(&subscriptions) || has(&schedules) }
}

/// What the API said; what it refused to say is absent.
#[derive(Debug)]
pub(super) struct Seen {
    approvals: Option<Approvals>,
    connections: Option<Vec<Connection>>,
    deliveries: Option<Deliveries>,
    imports: Option<Imports>,
    calls: Option<Calls>,
    setup: Option<Setup>,
}

pub(super) async fn look(visit: &Visit) -> Seen {
    let dead = json!({"delivery": {"state": "dead"}, "windowing": {"limit": ASKED, "oldest": NEWS_WORD}});
    let (approvals, connections, deliveries, imports, calls) = tokio::join!(
        list(visit, Path::new("/tools/approvals").with("status", "pending").with("limit", ASKED)),
        connections::query(visit, connections::Seen::WithTools, None),
        visit.post(Path::new("/triggers/deliveries/query"), dead),
        list(visit, Path::new("/tools/imports")),
        list(visit, Path::new("/tools/calls").with("limit", EARLY)),
    );
    let calls: Option<Calls> = calls;
    let is_early = calls.as_ref().is_some_and(|calls| calls.count < EARLY);
    let setup = if is_early { Some(setup(visit).await) } else { None };
    Seen { approvals, connections: connections.ok(), deliveries: deliveries.ok(), imports, calls, setup }
}

async fn list<T: DeserializeOwned>(visit: &Visit, path: Path) -> Option<T> {
    visit.get(path).await.ok()
}

impl Seen {
    pub(super) fn needs(self, visit: &Visit, failing: Option<&[Failing]>, since: &str) -> Needs {
        let (is_new, is_hidden, progress) = (self.is_new(), self.is_hidden(), self.progress());
        let approvals = self.approvals.as_ref().map_or(0, |answer| answer.approvals.len());
        let all = [
            self.approvals.and_then(|answer| waiting(visit, answer)),
            self.connections.and_then(|found| broken(visit, &found)),
            self.deliveries.and_then(|answer| dead(visit, answer)),
            failing.and_then(|failing| failing_tools(visit, failing, since)),
            self.imports.and_then(|answer| changed(visit, answer, Timestamp::now())),
        ];
        Needs { all: all.into_iter().flatten().collect(), approvals, is_new, progress, is_hidden }
    }

    fn is_hidden(&self) -> bool {
        self.approvals.is_none() && self.connections.is_none() && self.deliveries.is_none() && self.imports.is_none()
    }

    fn progress(&self) -> Option<Progress> {
        let Setup { has_rule, has_trigger } = self.setup?;
        let has_connection = self.connections.as_ref().is_none_or(|found| !found.is_empty());
        let has_call = self.calls.as_ref().is_none_or(|answer| answer.count > 0);
        let steps = [(Step::Connection, has_connection), (Step::Call, has_call), (Step::Rule, has_rule), (Step::Trigger, has_trigger)];
        let left: Vec<Step> = steps.into_iter().filter(|(_, is_done)| !is_done).map(|(step, _)| step).collect();
        (!left.is_empty()).then_some(Progress(left))
    }

    /// Only what is known to be empty is.
    fn is_new(&self) -> bool {
        let has_connections = self.connections.as_ref().is_none_or(|found| !found.is_empty());
        let has_calls = self.calls.as_ref().is_none_or(|answer| answer.count > 0);
        !has_connections && !has_calls
    }
}

fn waiting(visit: &Visit, answer: Approvals) -> Option<Need> {
    let here = visit.page("approvals");
    let things = answer.approvals.into_iter();
    let things =
        things.map(|one| Thing { href: here.clone().at(one.id).into(), name: one.call_ref, reason: None, at: Some(one.created_at) });
    Need::new("Calls that wait for approval", Tone::Wait, things.collect(), answer.cursor.is_some(), (here, "All approvals"))
}

fn broken(visit: &Visit, found: &[Connection]) -> Option<Need> {
    let here = visit.page("connections");
    let things = found.iter().filter_map(|one| {
        let name = format!("{} ({})", one.title(), one.integration_key);
        Some(Thing { href: one.page(visit), name, reason: Some(folded(one.trouble()?, REASON)), at: None })
    });
    Need::new("Connections that do not work", Tone::Bad, things.collect(), false, (here, "All connections"))
}

fn dead(visit: &Visit, answer: Deliveries) -> Option<Need> {
    let here = visit.page("deliveries");
    let things = answer.deliveries.into_iter().map(|one| Thing {
        href: here.clone().at(&one.id).into(),
        name: one.trigger_name.or(one.workflow).unwrap_or(one.id),
        reason: one.status.message.map(|message| folded(&message, REASON)),
        at: Some(one.updated_at),
    });
    Need::new(
        "Deliveries that died in the last 7 days",
        Tone::Bad,
        things.collect(),
        answer.cursor.is_some(),
        (here.clone().with("status", "dead"), "All dead deliveries"),
    )
}

fn failing_tools(visit: &Visit, failing: &[Failing], since: &str) -> Option<Need> {
    let here = visit.page("calls");
    let things = failing.iter().filter(|one| one.errors > 0).map(|one| Thing {
        href: here.clone().with("tool", &one.tool).with("since", since).into(),
        name: one.tool.clone(),
        reason: Some(folded(&one.words(), REASON)),
        at: None,
    });
    Need::new("Tools that fail", Tone::Bad, things.collect(), false, (here.clone().with("since", since), "All calls"))
}

fn changed(visit: &Visit, answer: Imports, now: Timestamp) -> Option<Need> {
    let here = visit.page("imports");
    let things = answer.imports.into_iter().filter(|one| one.is_changed(now)).map(|one| Thing {
        href: here.clone().at(one.id).into(),
        reason: Some(folded(&format!("It is at version {} now; see whether the rules for its tools still fit.", one.version), REASON)),
        name: one.name,
        at: Some(one.updated_at),
    });
    Need::new("Imports that changed in the last 7 days", Tone::Wait, things.collect(), false, (here.clone(), "All imports"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_late_changes_are_news() {
        let now: Timestamp = "2026-11-17T08:00:00Z".parse().unwrap();
        let import =
            |version, at: &str| Import { id: "1".to_owned(), name: "Pets".to_owned(), version, updated_at: at.to_owned() }.is_changed(now);
        assert!(import(2, "2026-11-16T08:00:00Z"));
        assert!(!import(1, "2026-11-16T08:00:00Z") && !import(2, "2026-11-01T08:00:00Z") && !import(2, "soon"));
    }

    #[test]
    fn a_project_is_new_only_where_that_is_known() {
        let seen = |calls: Option<usize>| Seen {
            approvals: None,
            connections: Some(Vec::new()),
            deliveries: None,
            imports: None,
            calls: calls.map(|count| Calls { count }),
            setup: None,
        };
        assert!(seen(Some(0)).is_new() && !seen(Some(1)).is_new() && !seen(None).is_new());
    }

    #[test]
    fn first_steps_go_when_all_are_done() {
        let seen = |has_rule, setup: bool| Seen {
            approvals: None,
            connections: None,
            deliveries: None,
            imports: None,
            calls: Some(Calls { count: 3 }),
            setup: setup.then_some(Setup { has_rule, has_trigger: true }),
        };
        assert!(seen(false, true).progress().is_some_and(|progress| progress.has_call() && !progress.has_rule()));
        assert!(seen(true, true).progress().is_none() && seen(false, false).progress().is_none());
    }

    #[test]
    fn more_than_fit_are_counted() {
        let thing = |name: usize| Thing { href: String::new(), name: name.to_string(), reason: None, at: None };
        let need = Need::new("Things", Tone::Bad, (0..20).map(thing).collect(), true, (Path::new("/all"), "All")).unwrap();
        assert!(need.count.to_string().contains("20+") && need.things.len() == SHOWN);
        assert!(Need::new("Things", Tone::Bad, Vec::new(), false, (Path::new("/all"), "All")).is_none());
    }
}
