//! The loop played by hand.

use models::Usage;

use super::window::SHOWN;
use super::*;

fn conversation(limits: Limits) -> Conversation {
    let mut conversation = Conversation::new(limits, None, 128_000, HashSet::from(["theirs".to_owned()]));
    conversation.begin(Vec::new(), Vec::new(), vec![Message::User { text: "go".to_owned() }]);
    conversation
}

fn says(text: &str, calls: &[&str]) -> Reply {
    let calls = calls.iter().map(|name| ToolCall { id: format!("c-{name}"), name: (*name).to_owned(), arguments: "{}".to_owned() });
    Reply { text: text.to_owned(), calls: calls.collect(), usage: Usage { input: 10, output: 5, ..Usage::default() }, ..Reply::default() }
}

fn done(content: &str) -> CallOutcome {
    CallOutcome::new(OutcomeKind::Done, content)
}

#[test]
fn turns_and_calls_alternate_until_there_is_an_answer() {
    let mut run = conversation(Limits::default());
    assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work));
    run.turn(Purpose::Work, says("", &["find", "read"]), 2);
    assert_eq!((run.next(&run.used()), run.open_calls().count()), (Step::Call, 2));
    run.call_ended(3, done("second"));
    assert_eq!(run.next(&run.used()), Step::Call, "the other is still open");
    run.call_ended(2, done("first"));
    run.call_ended(2, done("again"));
    assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work));
    let told = run.own_messages().iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["first", "second"], "in the order of the calls, each once");
    run.turn(Purpose::Work, says("the end", &[]), 5);
    assert_eq!((run.next(&run.used()), run.answer().text.as_str()), (Step::Conclude, "the end"));
    assert_eq!((run.used().turns, run.used().tool_calls, run.used().tokens.input), (2, 2, 20));
}

#[test]
fn a_limit_asks_once_for_an_answer_and_ends() {
    let mut run = conversation(Limits { turns: 1, ..Limits::default() });
    run.turn(Purpose::Work, says("", &["find"]), 2);
    run.call_ended(2, done("x"));
    assert_eq!(run.next(&run.used()), Step::Ask(Purpose::LastAnswer));
    assert!(matches!(run.question(Purpose::LastAnswer, &run.used()).last(), Some(Message::User { text }) if text.contains("1 turns")));
    run.turn(Purpose::LastAnswer, says("what I know", &["find"]), 3);
    assert_eq!(run.next(&run.used()), Step::Stop { limit: "1 turns".to_owned() });
    assert_eq!(run.answer().text, "what I know");
}

#[test]
fn calls_over_the_limit_are_not_made() {
    let mut run = conversation(Limits { tool_calls: 1, ..Limits::default() });
    run.turn(Purpose::Work, says("", &["a", "b", "c"]), 2);
    assert_eq!(run.open_calls().map(|call| call.step).collect::<Vec<_>>(), [2]);
    run.call_ended(2, done("x"));
    assert_eq!((run.used().tool_calls, run.next(&run.used())), (1, Step::Ask(Purpose::LastAnswer)));
}

#[test]
fn time_that_is_up_is_a_limit_like_any_other() {
    let run = conversation(Limits { seconds: 5, ..Limits::default() });
    let used = Used { active: std::time::Duration::from_secs(6), ..run.used() };
    assert_eq!(run.next(&used), Step::Ask(Purpose::LastAnswer));
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let mut run = conversation(Limits::default());
    run.turn(Purpose::Work, says("no json", &[]), 2);
    run.unfit("it is not JSON");
    assert_eq!((run.next(&run.used()), run.times_unfit()), (Step::Ask(Purpose::Work), 1));
}

#[test]
fn tools_of_whoever_asks_end_the_run_after_ours() {
    let mut run = conversation(Limits::default());
    run.turn(Purpose::Work, says("", &["ours", "theirs"]), 2);
    assert_eq!(run.open_calls().map(|call| call.call.name.as_str()).collect::<Vec<_>>(), ["ours"]);
    run.call_ended(2, done("x"));
    assert_eq!(run.next(&run.used()), Step::HandOver);
    assert_eq!(run.handed_over().iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["theirs"]);
}

#[test]
fn a_full_window_makes_stubs_and_then_a_summary() {
    let mut run = Conversation::new(Limits::default(), None, 4000, HashSet::new());
    run.begin(vec![Message::User { text: "before".to_owned() }], Vec::new(), vec![Message::User { text: "go".to_owned() }]);
    let turn = |run: &mut Conversation, step: i64, content: &str| {
        run.turn(Purpose::Work, Reply { usage: Usage::default(), ..says("", &["read"]) }, step);
        run.call_ended(step, done(content));
    };
    turn(&mut run, 2, &"x".repeat(9000));
    turn(&mut run, 4, &"y".repeat(9000));
    assert_eq!(run.next(&run.used()), Step::Stub);
    run.stub();
    assert_eq!(run.result(1, 8990).as_deref(), Some("xxxxxxxxxx"), "what was left out can be read");
    assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work), "the newest result stays");
    turn(&mut run, 6, &"z".repeat(20_000));
    assert_eq!(run.next(&run.used()), Step::Stub);
    run.stub();
    assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Summary));
    run.turn(Purpose::Summary, says("short", &[]), 8);
    assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work), "it is not summarized again at once");
    let Kept { messages: kept, is_replacing, .. } = run.kept();
    assert!(is_replacing && matches!(&kept[0], Message::User { text } if text.ends_with("short")));
    assert!(matches!(&kept[1], Message::Assistant { calls, .. } if calls.len() == 1), "the newest turn stays whole: {kept:?}");
    assert_eq!(kept.len(), 3);
}

#[test]
fn long_results_are_cut_and_can_be_read_on() {
    let mut run = conversation(Limits::default());
    run.turn(Purpose::Work, says("", &["read"]), 2);
    let long = format!("{}{}", "a".repeat(SHOWN), "rest");
    run.call_ended(2, done(&long));
    let Some(Message::Tool { content, .. }) = run.own_messages().last() else { panic!() };
    assert!(content.contains("offset 32768"));
    assert_eq!(run.result(1, SHOWN).as_deref(), Some("rest"));
    assert_eq!(run.result(9, 0), None);
}

#[test]
fn repeated_call_ids_are_told_apart() {
    let mut run = conversation(Limits::default());
    run.turn(Purpose::Work, says("", &["a"]), 2);
    assert_eq!((run.own_id("c-a", 2), run.own_id("c-b", 2)), ("c-a_2".to_owned(), "c-b".to_owned()));
}

#[test]
fn a_session_can_read_what_was_left_out_before() {
    let user = |text: &str| vec![Message::User { text: text.to_owned() }];
    let mut run = Conversation::new(Limits::default(), None, 4000, HashSet::new());
    run.begin(Vec::new(), Vec::new(), user("go"));
    run.turn(Purpose::Work, says("", &["read"]), 2);
    run.call_ended(2, done(&format!("{}{}", "x".repeat(SHOWN), "rest")));
    run.turn(Purpose::Work, says("", &["look"]), 4);
    run.call_ended(4, done("short"));
    run.stub();
    let kept = run.kept();
    assert_eq!(
        kept.left_out.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        [1, 2],
        "the stub names the cut result, which names all of it"
    );
    let (history, left_out) = (kept.messages.to_vec(), kept.left_out);
    let mut next = conversation(Limits::default());
    next.begin(history, left_out, user("and now?"));
    assert!(next.result(2, 0).is_some_and(|text| text.starts_with("xxx")));
    assert_eq!(next.result(1, SHOWN).as_deref(), Some("rest"));
    assert_eq!(next.own_id("c-read", 9), "c-read_9", "ids of the session are taken too");
}
