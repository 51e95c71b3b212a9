//! The steps of a workflow as a picture: boxes in their order, with an arrow from each step to those that use it.

use std::fmt::Write;

use serde_json::Value;

const LEFT: usize = 8;
const TOP: usize = 8;
const WIDTH: usize = 300;
const HEIGHT: usize = 64;
const GAP: usize = 28;
/// How far arrows that pass other boxes keep from them, and from each other.
const LANE: usize = 14;
/// Texts longer than this would leave their box; the whole text is the title of the box.
const FITS: usize = 38;

/// What `workflow_picture.html` draws.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    /// The same in words.
    pub(super) label: String,
    pub(super) boxes: Vec<StepBox>,
    pub(super) arrows: Vec<Arrow>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct StepBox {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) name: String,
    pub(super) call: String,
    pub(super) condition: String,
    pub(super) title: String,
    pub(super) is_result: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    /// As SVG writes paths.
    pub(super) line: String,
    pub(super) head: String,
}

/// A box before it has a place.
struct Step<'a> {
    name: &'a str,
    call: &'a str,
    condition: &'a str,
    uses: Vec<usize>,
    is_result: bool,
}

/// The picture of a workflow's data; none where it has no steps.
pub(super) fn picture(data: &Value) -> Option<Picture> {
    let steps = steps(data);
    if steps.is_empty() {
        return None;
    }
    let lanes = steps.iter().enumerate().flat_map(|(at, step)| step.uses.iter().filter(move |from| **from + 1 < at)).count();
    Some(Picture {
        width: LEFT + WIDTH + LANE * (lanes + 1),
        height: TOP + steps.len() * HEIGHT + (steps.len() - 1) * GAP + TOP,
        label: label(&steps),
        arrows: arrows(&steps),
        boxes: steps.iter().enumerate().map(|(at, step)| step_box(at, step)).collect(),
    })
}

fn steps(data: &Value) -> Vec<Step<'_>> {
    let listed = data["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = listed.iter().map(|step| step["name"].as_str().unwrap_or("?")).collect();
    let mut steps: Vec<Step<'_>> = listed
        .iter()
        .enumerate()
        .map(|(at, step)| Step {
            name: names[at],
            call: step["call"].as_str().unwrap_or_default(),
            condition: step["when"].as_str().unwrap_or_default(),
            uses: places(&names[..at], &used_by(step)),
            is_result: false,
        })
        .collect();
    if !steps.is_empty() && !data["result"].is_null() {
        let mut used = Vec::new();
        in_templates(&data["result"], &mut used);
        steps.push(Step { name: "result", call: "", condition: "", uses: places(&names, &used), is_result: true });
    }
    steps
}

fn places(names: &[&str], used: &[String]) -> Vec<usize> {
    (0..names.len()).filter(|at| used.iter().any(|name| name == names[*at])).collect()
}

/// The names of the steps that a step uses or says it comes after.
fn used_by(step: &Value) -> Vec<String> {
    let mut used = Vec::new();
    for (name, value) in step.as_object().into_iter().flatten() {
        match name.as_str() {
            "needs" | "after" => explicit(value, &mut used),
            "when" => in_expression(value.as_str().unwrap_or_default(), &mut used),
            _ => in_templates(value, &mut used),
        }
    }
    used
}

fn explicit(value: &Value, used: &mut Vec<String>) {
    match value {
        Value::String(name) => used.push(name.clone()),
        Value::Array(all) => all.iter().for_each(|value| explicit(value, used)),
        _ => {}
    }
}

/// The steps that expressions in `{{ }}` name, at any depth.
fn in_templates(value: &Value, used: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            for part in text.split("{{").skip(1) {
                in_expression(part.split("}}").next().unwrap_or_default(), used);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| in_templates(value, used)),
        Value::Object(all) => all.values().for_each(|value| in_templates(value, used)),
        _ => {}
    }
}

/// The steps that an expression names, as `steps.NAME` or `steps["NAME"]`.
fn in_expression(text: &str, used: &mut Vec<String>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, found) in text.match_indices("steps") {
        if text[..at].chars().next_back().is_some_and(|c| is_word(c) || c == '.') {
            continue;
        }
        let rest = text[at + found.len()..].trim_start();
        let rest = rest.strip_prefix('.').or_else(|| rest.strip_prefix('[')?.trim_start().strip_prefix(['"', '\'']));
        let name: String = rest.unwrap_or_default().chars().take_while(|c| is_word(*c)).collect();
        if !name.is_empty() {
            used.push(name);
        }
    }
}

fn label(steps: &[Step<'_>]) -> String {
    let mut words = String::from("Steps in order: ");
    for (at, step) in steps.iter().enumerate() {
        let used: Vec<&str> = step.uses.iter().map(|from| steps[*from].name).collect();
        let uses = if used.is_empty() { String::new() } else { format!(", which uses {}", used.join(" and ")) };
        let between = if at == 0 { "" } else { "; " };
        // Writing into a text cannot fail.
        let _ = write!(words, "{between}{}{uses}", step.name);
    }
    words
}

fn top_of(at: usize) -> usize {
    TOP + at * (HEIGHT + GAP)
}

fn step_box(at: usize, step: &Step<'_>) -> StepBox {
    let condition = if step.condition.is_empty() { String::new() } else { format!("if {}", step.condition) };
    let name = if step.is_result { step.name.to_owned() } else { format!("{}. {}", at + 1, step.name) };
    let whole = [name.as_str(), step.call, condition.as_str()];
    StepBox {
        x: LEFT,
        y: top_of(at),
        width: WIDTH,
        height: HEIGHT,
        title: whole.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        call: fitting(&short_call(step.call)),
        condition: fitting(&condition),
        name: fitting(&name),
        is_result: step.is_result,
    }
}

/// A call without what is the same in most of them.
fn short_call(call: &str) -> String {
    match call.split('.').collect::<Vec<_>>()[..] {
        ["tools", _, integration, action, ..] => format!("{integration} {action}"),
        ["workflow", _, name, ..] => format!("workflow {name}"),
        _ => call.to_owned(),
    }
}

fn fitting(text: &str) -> String {
    if text.chars().count() <= FITS { text.to_owned() } else { text.chars().take(FITS - 1).chain(['…']).collect() }
}

/// Straight down to the next box, and in a lane of its own to one further below.
fn arrows(steps: &[Step<'_>]) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    let mut lane = LEFT + WIDTH;
    for (at, step) in steps.iter().enumerate() {
        for from in &step.uses {
            if from + 1 == at {
                let (x, end) = (LEFT + WIDTH / 2, top_of(at));
                let line = format!("M{x} {}V{}", top_of(*from) + HEIGHT, end - 6);
                arrows.push(Arrow { line, head: format!("{x},{end} {},{} {},{}", x - 5, end - 8, x + 5, end - 8) });
            } else {
                lane += LANE;
                let (start, end) = (top_of(*from) + HEIGHT / 2 + 6, top_of(at) + HEIGHT / 2 - 6);
                let side = LEFT + WIDTH;
                let line = format!("M{side} {start}H{lane}V{end}H{}", side + 6);
                arrows.push(Arrow { line, head: format!("{side},{end} {},{} {},{}", side + 8, end - 5, side + 8, end + 5) });
            }
        }
    }
    arrows
}

#[cfg(test)]
mod tests {
    use askama::Template;
    use serde_json::json;

    use super::*;

    #[derive(Template)]
    #[template(source = "{% include \"workflow_picture.html\" %}", ext = "html")]
    struct Drawn {
        picture: Picture,
    }

    fn uses(data: &Value) -> Vec<(String, Vec<usize>)> {
        steps(data).into_iter().map(|step| (step.name.to_owned(), step.uses)).collect()
    }

    #[test]
    fn references_are_found_wherever_they_stand() {
        let data = json!({"steps": [
            {"name": "a"}, {"name": "b", "arguments": {"deep": [{"x": "n: {{ steps.a.result }} steps.b"}]}},
            {"name": "c", "when": "inputs.x and steps['b'].ok"}, {"name": "d", "needs": ["a"], "after": "c"},
            {"name": "e", "arguments": "{{ my_steps.a }} {{ inputs.steps.b }} steps.c {{ steps.later }}"}],
            "result": {"r": "{{ steps . d }}{{steps.e.ok}}"}});
        let wanted: [(&str, Vec<usize>); 6] =
            [("a", vec![]), ("b", vec![0]), ("c", vec![1]), ("d", vec![0, 2]), ("e", vec![]), ("result", vec![4])];
        assert_eq!(uses(&data), wanted.map(|(name, uses)| (name.to_owned(), uses)));
    }

    #[test]
    fn boxes_stand_in_order_and_arrows_end_at_them() {
        let data = json!({"steps": [{"name": "a", "call": "tools.native.git.GET.main"}, {"name": "b", "arguments": "{{ steps.a }}"}, {"name": "c", "arguments": "{{ steps.a }}"}]});
        let picture = picture(&data).unwrap();
        assert_eq!(picture.boxes.iter().map(|step| step.y).collect::<Vec<_>>(), [8, 100, 192]);
        assert_eq!(picture.boxes[0].call, "git GET");
        assert_eq!(picture.arrows[0].line, "M158 72V94");
        assert_eq!(picture.arrows[1].line, "M308 46H322V218H314");
        assert_eq!(picture.label, "Steps in order: a; b, which uses a; c, which uses a");
        assert!(picture.width >= 322 && picture.height >= 192 + HEIGHT, "{picture:?}");
    }

    #[test]
    fn what_has_no_steps_has_no_picture() {
        for data in [json!(null), json!({"kind": "echo"}), json!({"steps": []}), json!({"steps": "x", "result": 1})] {
            assert_eq!(picture(&data), None);
        }
        assert!(picture(&json!({"steps": [1, null, {"name": 3}]})).is_some());
    }

    #[test]
    fn names_are_only_ever_text() {
        let hostile = "</svg><script>\"x";
        let data = json!({"steps": [{"name": hostile, "call": hostile, "when": hostile}]});
        let html = Drawn { picture: picture(&data).unwrap() }.render().unwrap();
        assert!(!html.contains("<script") && html.matches("</svg>").count() == 1, "{html}");
        assert!(html.contains("role=\"img\"") && html.contains("aria-label=\"Steps in order: "), "{html}");
    }
}
