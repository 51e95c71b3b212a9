//! One call, with all that is on record of it.

use askama::Template;
use axum::extract::Path as Segments;
use serde::Deserialize;
use serde_json::Value;

use super::Call;
use super::names::Names;
use crate::frame::{Frame, Section, show};
use crate::pages::try_tool::can_be_tried;
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui::{self, Markup, duration_ms, json_tree};
use crate::visit::Visit;

/// The width of the bar that shows where the time went, in its own units.
const BAR: f64 = 600.0;

#[derive(Debug, Deserialize)]
struct OneAnswer {
    call: Detail,
}

#[derive(Debug, Deserialize)]
struct Detail {
    #[serde(flatten)]
    call: Call,
    #[serde(default)]
    timings: Timings,
    repeats_id: Option<String>,
    kept: Option<Kept>,
}

/// Where the time of a call went in milliseconds, as far as it is known.
#[derive(Debug, Default, Deserialize)]
struct Timings {
    #[serde(rename = "approval_wait_ms")]
    approval_wait: Option<f64>,
    #[serde(rename = "queue_ms")]
    queue: Option<f64>,
    #[serde(rename = "renewal_ms")]
    renewal: Option<f64>,
    #[serde(rename = "upstream_ms")]
    upstream: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Kept {
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    result: Value,
    until: Option<String>,
}

impl Kept {
    fn arguments(&self) -> Markup {
        json_tree(&self.arguments)
    }

    fn result(&self) -> Markup {
        json_tree(&self.result)
    }
}

/// A piece of the bar.
#[derive(Debug, PartialEq)]
struct Part {
    label: &'static str,
    took: String,
    class: &'static str,
    x: String,
    width: String,
}

/// The pieces of the bar in the order in which they come about; nothing where nothing is known.
fn parts(timings: &Timings, duration: f64) -> Vec<Part> {
    let known = [
        ("Waited for approval", "part0", timings.approval_wait),
        ("Waited for its turn", "part1", timings.queue),
        ("Renewed the credential", "part2", timings.renewal),
        ("The service", "part3", timings.upstream),
    ];
    let mut known: Vec<_> = known.into_iter().filter_map(|(label, class, ms)| Some((label, class, ms?.max(0.0)))).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let sum: f64 = known.iter().map(|(_, _, ms)| ms).sum();
    if duration > sum {
        known.push(("Toolyard", "part4", duration - sum));
    }
    let scale = BAR / duration.max(sum).max(f64::MIN_POSITIVE);
    let mut x = 0.0;
    let mut placed = Vec::with_capacity(known.len());
    for (label, class, ms) in known {
        let width = ms * scale;
        placed.push(Part { label, took: duration_ms(ms), class, x: format!("{x:.1}"), width: format!("{width:.1}") });
        x += width;
    }
    placed
}

/// Where a call leads.
#[derive(Debug)]
struct Links {
    all: String,
    same_tool: String,
    connection: Option<(String, String)>,
    same_key: Option<String>,
    agent: Option<(String, String)>,
    run: Option<String>,
    same_run: Option<String>,
    delivery: Option<String>,
    approval: Option<String>,
    end_user: Option<String>,
    /// Where the tool can be called by hand.
    try_it: Option<String>,
    repeats: Option<String>,
    settings: String,
}

impl Links {
    fn new(visit: &Visit, names: &Names, detail: &Detail) -> Self {
        let (call, all) = (&detail.call, visit.page("calls"));
        let same = |name: &str, value: &str| String::from(visit.page("calls").with(name, value));
        let named = |section: &str, id: &str, name: &str| (name.to_owned(), visit.page(section).at(id).into());
        Self {
            same_tool: same("tool", call.name()),
            connection: call.connection_id.as_deref().map(|id| named("connections", id, names.connection(id))),
            same_key: call.key_id.as_deref().map(|id| same("key_id", id)),
            agent: call.agent_id.as_deref().map(|id| named("agents", id, names.agent(id))),
            run: call.run_id.as_deref().map(|id| visit.page("workflows").at("runs").at(id).into()),
            same_run: call.run_id.as_deref().map(|id| same("run_id", id)),
            delivery: call.delivery_id.as_deref().map(|id| visit.page("deliveries").at(id).into()),
            approval: call.approval_id.as_deref().map(|id| visit.page("approvals").at(id).into()),
            end_user: call.end_user.as_deref().map(|name| visit.page("users").at(name).into()),
            try_it: can_be_tried(&call.called_as).then(|| visit.page("try").with("ref", &call.called_as).into()),
            repeats: detail.repeats_id.as_deref().map(|id| all.clone().at(id).into()),
            settings: visit.page("settings").into(),
            all: all.into(),
        }
    }
}

#[derive(Template)]
#[template(path = "call.html")]
struct OnePage {
    frame: Frame,
    call: Call,
    links: Links,
    parts: Vec<Part>,
    kept: Option<Kept>,
    /// Whether kept values would be shown to this visitor.
    may_see_kept: bool,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let path = Path::new("/tools/calls").at(&id);
    let (answer, names) = tokio::join!(visit.get::<OneAnswer>(path), Names::of_all(&visit));
    let detail = answer?.call;
    let links = Links::new(&visit, &names, &detail);
    let page = OnePage {
        frame: Frame::new(&visit, Section::Calls, detail.call.name()),
        links,
        parts: parts(&detail.timings, detail.call.duration_ms),
        kept: detail.kept,
        may_see_kept: visit.may("edit_tools"),
        call: detail.call,
    };
    show(&page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_filled_by_what_is_known_and_the_rest() {
        let timings = Timings { renewal: Some(25.0), upstream: Some(50.0), ..Timings::default() };
        let placed: Vec<_> = parts(&timings, 100.0).into_iter().map(|part| (part.label, part.x, part.width)).collect();
        let expected = [("Renewed the credential", "0.0", "150.0"), ("The service", "150.0", "300.0"), ("Toolyard", "450.0", "150.0")];
        assert_eq!(placed, expected.map(|(label, x, width)| (label, x.to_owned(), width.to_owned())));
    }

    #[test]
    fn a_wait_longer_than_the_call_still_fits() {
        let timings = Timings { approval_wait: Some(300.0), upstream: Some(100.0), ..Timings::default() };
        let widths: Vec<_> = parts(&timings, 100.0).into_iter().map(|part| part.width).collect();
        assert_eq!(widths, ["450.0", "150.0"]);
        assert!(parts(&Timings::default(), 100.0).is_empty());
    }
}
