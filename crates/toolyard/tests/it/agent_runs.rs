//! Agents that run: turns of a scripted model, calls of tools, people who decide, limits, sessions, and what goes wrong.

use std::time::Duration;

use agent_runs::RunEvent;
use http::Method;
use kernel::{RunId, Scope};
use model_fake::{Conversation, Fault, ModelServer, Script, Turn};
use serde_json::{Value, json};
use store::args;

use crate::approvals::{ask_before, decide};
use crate::end_users::{connect_for, key_used};
use crate::reserved::{commit, workflow};
use crate::support::{Database, Fake, Reply, Test, on_both, until};
use crate::triggers::{deliveries, send, webhook};

const MAKE: &str = "tools__native__fake__MAKE_A_THING__main";
const GET: &str = "tools__native__fake__GET_A_THING__main";

fn tool(action: &str) -> Value {
    json!({"type": "gateway", "provider": "native", "integration": "fake", "action": action, "connection": "main"})
}

/// An agent with two tools of the fake service.
pub fn agent(model: &ModelServer, change: impl FnOnce(&mut Value)) -> Value {
    let mut data = json!({
        "kind": "agent",
        "model": {"api": "openai_chat", "url": model.url(), "name": "scripted"},
        "instructions": "You make {{ inputs.what | default('things') }}.",
        "tools": [tool("MAKE_A_THING"), tool("GET_A_THING")],
    });
    change(&mut data);
    data
}

async fn invoke(test: &Test, slug: &str, inputs: Value) -> Reply {
    test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": slug}}, "data": {"inputs": inputs}})).await
}

async fn run_of(test: &Test, answer: &Value) -> Value {
    let id = answer["meta"]["run_id"].as_str().unwrap();
    test.get(&format!("/workflows/runs/{id}")).await.expect(200)["run"].take()
}

/// A run that has ended.
async fn ended(test: &Test, answer: &Value) -> Value {
    for _ in 0..800 {
        let run = run_of(test, answer).await;
        if !matches!(run["agent"]["state"].as_str(), Some("ready" | "running" | "waiting")) {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never ended: {:#}", run_of(test, answer).await);
}

fn states(run: &Value) -> Vec<(&str, &str)> {
    run["steps"].as_array().unwrap().iter().map(|step| (step["name"].as_str().unwrap(), step["state"].as_str().unwrap())).collect()
}

async fn project(test: &Test) -> Scope {
    Scope::operator(test.yard.accounts.find_project("default").await.unwrap().id)
}

fn id_of(answer: &Value) -> RunId {
    answer["meta"]["run_id"].as_str().unwrap().parse().unwrap()
}

/// A request for an end user.
async fn as_user(test: &Test, user: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
    let request = http::Request::builder().method(method).uri(path).header("authorization", format!("ApiKey {}", test.owner));
    test.send(crate::support::with_body(request.header("toolyard-end-user", user), body)).await
}

/// An agent that makes one thing, for which it needs a person's word.
async fn careful_maker(test: &Test) -> (Fake, ModelServer) {
    let turns = [Turn::call(MAKE, json!({"title": "paid"})), Turn::say("Done with it.")];
    let (fake, model) = (Fake::start().await, ModelServer::start(Script::turns(turns)).await);
    test.connect_fake(&fake, "main").await;
    ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
    workflow(test, "maker", agent(&model, |_| {})).await;
    (fake, model)
}

on_both! {
    async fn an_agent_calls_its_tools_and_answers(test: &Test) {
        let (fake, model) = (Fake::start().await, ModelServer::start(Script::turns([
            Turn::say("Let me see.").and_call(GET, json!({"owner": "o", "path": "p"})).and_call(MAKE, json!({"title": "one"})),
            Turn::say("Made one."),
        ])).await);
        test.connect_fake(&fake, "main").await;
        let before = fake.seen().len();
        workflow(test, "maker", agent(&model, |_| {})).await;
        let answer = invoke(test, "maker", json!({"message": "Make one."})).await.expect(200);
        assert_eq!((&answer["status"]["code"], &answer["data"]["outputs"]["text"]), (&json!(200), &json!("Made one.")));
        assert_eq!(fake.seen().len() - before, 2, "each tool was called once");
        let run = run_of(test, &answer).await;
        assert_eq!(states(&run), [("turn 1", "done"), ("3.tools__native__fake__GET_A_THING__main", "done"), ("4.tools__native__fake__MAKE_A_THING__main", "done"), ("turn 2", "done")]);
        let usage = &run["agent"]["usage"];
        assert_eq!((&run["agent"]["state"], &usage["turns"], &usage["tool_calls"]), (&json!("done"), &json!(2), &json!(2)));
        assert!(usage["input_tokens"].as_u64().unwrap() > 0);
        let asked = model.asked();
        assert_eq!(asked[0].conversation.system, "You make things.");
        assert_eq!((asked[0].conversation.last_user(), asked[1].conversation.last_results().len()), ("Make one.", 2));
        // The record of runs and of calls has it like any other.
        let runs = test.get("/workflows/runs").await.expect(200);
        assert_eq!((&runs["count"], &runs["runs"][0]["id"]), (&json!(1), &answer["meta"]["run_id"]));
        let calls = test.get("/tools/calls").await.expect(200);
        assert_eq!((&calls["count"], &calls["calls"][0]["run_id"]), (&json!(2), &answer["meta"]["run_id"]), "{calls:#}");
        // As a tool, and from an environment, it is a workflow like any other.
        let called = Test::content(test.call("workflow.variant.maker", json!({"message": "Again."})).await);
        assert_eq!(called["text"], "Made one.");
        let all = test.get("/workflows/runs?state=open").await.expect(200);
        assert_eq!(all["count"], 0);
        assert!(test.get("/workflows/runs?state=opn").await.detail(422).contains("Did you mean `open`?"));
        // What happened can be followed from any place on.
        let events = test.yard.agent_runs.next_events(project(test).await, id_of(&answer), 0).await.unwrap();
        assert!(matches!(events[0].event, RunEvent::RunStarted { .. }) && matches!(events.last().unwrap().event, RunEvent::RunEnded { code: 200, .. }));
        assert_eq!(events.iter().map(|event| event.number).collect::<Vec<_>>(), (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
        let rest = test.yard.agent_runs.next_events(project(test).await, id_of(&answer), 5).await.unwrap();
        assert_eq!(rest, events[5..]);
    }

    async fn a_person_decides_while_nothing_runs(test: &Test) {
        let (fake, model) = careful_maker(test).await;
        let before = fake.seen().len();
        for decision in ["approve", "deny"] {
            let answer = invoke(test, "maker", json!({"message": decision})).await.expect(202);
            let approval = answer["data"]["outputs"]["approval"]["id"].as_str().unwrap().to_owned();
            assert!(answer["data"]["outputs"]["approval"]["url"].as_str().unwrap().contains(&approval), "{answer:#}");
            let run = run_of(test, &answer).await;
            assert_eq!((&run["agent"]["state"], &run["agent"]["approval_id"]), (&json!("waiting"), &json!(approval)));
            assert_eq!(states(&run).last().unwrap().1, "waiting");
            until("nothing is held in memory", async || test.yard.agent_runs.running() == 0).await;
            decide(test, &approval, decision).await;
            test.yard.agent_runs.start().await.unwrap();
            let run = ended(test, &answer).await;
            assert_eq!((&run["agent"]["state"], &run["outputs"]["text"]), (&json!("done"), &json!("Done with it.")), "{run:#}");
            assert_eq!(fake.seen().len() - before, 1, "{decision}");
        }
        let told = model.asked().last().unwrap().conversation.last_results().join(" ");
        assert!(told.contains("was denied: because"), "{told}");
    }

    async fn a_database_that_fails_for_a_while_ends_no_run(test: &Test) {
        let _servers = careful_maker(test).await;
        let answer = invoke(test, "maker", json!({})).await.expect(202);
        until("nothing is held in memory", async || test.yard.agent_runs.running() == 0).await;
        decide(test, answer["data"]["outputs"]["approval"]["id"].as_str().unwrap(), "approve").await;
        test.yard.db.execute("alter table gateway_connections rename to connections_aside", args![]).await.unwrap();
        test.yard.agent_runs.start().await.unwrap();
        let later = "select id from agent_runs where state = 'ready' and due_at > $1";
        until("the run is put off", async || !test.yard.db.all(later, args![test.clock.now()]).await.unwrap().is_empty()).await;
        test.yard.db.execute("alter table connections_aside rename to gateway_connections", args![]).await.unwrap();
        test.clock.advance(Duration::from_secs(5));
        let run = ended(test, &answer).await;
        assert_eq!((&run["agent"]["state"], &run["outputs"]["text"]), (&json!("done"), &json!("Done with it.")), "{run:#}");
    }

    async fn limits_end_a_run_with_what_it_knows(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let model = ModelServer::start(Script::function(|said: &Conversation| {
            if said.last_user().contains("Answer now") { Turn::say("This far.") } else { Turn::call(GET, json!({"owner": "o", "path": "p"})) }
        })).await;
        let cases = [
            (json!({"turns": 3}), "3 turns", 3, 3),
            (json!({"tool_calls": 2}), "2 tool calls", 3, 2),
            (json!({"tokens": 1}), "1 tokens", 1, 1),
            (json!({"usd": 0.000_001}), "US dollars", 1, 1),
        ];
        for (index, (limits, said, turns, calls)) in cases.into_iter().enumerate() {
            let slug = format!("endless-{index}");
            workflow(test, &slug, agent(&model, |data| {
                data["limits"] = limits;
                data["model"]["prices"] = json!({"input": 3, "output": 15});
            })).await;
            let answer = invoke(test, &slug, json!({})).await.expect(422);
            assert!(answer["status"]["message"].as_str().unwrap().contains(said), "{answer:#}");
            assert_eq!((&answer["data"]["outputs"]["text"], &answer["data"]["outputs"]["stop_reason"]), (&json!("This far."), &json!("limit")));
            let usage = &run_of(test, &answer).await["agent"].take();
            assert_eq!((&usage["state"], &usage["usage"]["turns"], &usage["usage"]["tool_calls"]), (&json!("limit"), &json!(turns), &json!(calls)));
            assert!(usage["usage"]["usd"].as_f64().unwrap() > 0.0);
        }
    }

    async fn what_models_do_wrong_ends_as_documented(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let model = ModelServer::start(Script::function(|said: &Conversation| match (said.last_user(), said.turns_since_user()) {
            ("wrong arguments", 0) => Turn::call(MAKE, json!({"titel": 1})),
            ("no json", 0) => Turn::call(MAKE, json!("{\"title\": ")),
            ("unknown tool", 0) => Turn::call("tools__native__fake__MAKE_A_THIN__main", json!({})),
            ("storm", 0) => Turn::say("after the storm").failing(2, Fault::Status { status: 529, retry_after: None }).failing(1, Fault::Status { status: 429, retry_after: Some("0".to_owned()) }),
            ("cut", 0) => Turn::say("after the cut").failing(2, Fault::Cut),
            ("gibberish", _) => Turn::fails(Fault::NotJson),
            ("refused", _) => Turn::fails(Fault::status(400)),
            ("declined", _) => Turn::say("I will not.").refused(),
            _ => Turn::say(said.last_results().join(" ")),
        })).await;
        workflow(test, "maker", agent(&model, |_| {})).await;
        for (message, status, part) in [
            ("wrong arguments", 200, "Invalid arguments"),
            ("no json", 200, "The arguments are not JSON"),
            ("unknown tool", 200, "Did you mean `tools__native__fake__MAKE_A_THING__main`?"),
            ("storm", 200, "after the storm"),
            ("cut", 200, "after the cut"),
            ("gibberish", 424, "The model could not be asked (asked 3 times)"),
            ("refused", 424, "The model could not be asked"),
            ("declined", 422, "The model declined: I will not."),
        ] {
            let answer = invoke(test, "maker", json!({"message": message})).await.expect(status);
            let said = if status == 200 { &answer["data"]["outputs"]["text"] } else { &answer["status"]["message"] };
            assert!(said.as_str().unwrap().contains(part), "{message}: {answer:#}");
        }
    }

    async fn outputs_fit_their_schema_or_the_run_fails(test: &Test) {
        let model = ModelServer::start(Script::function(|said: &Conversation| match said.last_user() {
            "never" => Turn::say("four"),
            text if text.contains("does not fit") && said.messages.len() < 4 => Turn::say("{\"n\": 4}"),
            _ => Turn::say("{\"n\": \"four\"}"),
        })).await;
        let outputs = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        workflow(test, "counter", agent(&model, |data| {
            data["schemas"] = json!({"outputs": outputs});
            data["tools"] = json!([]);
        })).await;
        let answer = invoke(test, "counter", json!({"message": "once"})).await.expect(200);
        assert_eq!(answer["data"]["outputs"], json!({"n": 4}));
        assert!(model.asked()[0].conversation.schema.is_some());
        model.play(Script::turns([Turn::say("four")]));
        let answer = invoke(test, "counter", json!({"message": "never"})).await.expect(422);
        assert!(answer["status"]["message"].as_str().unwrap().contains("also when it was asked again"), "{answer:#}");
    }

    async fn a_session_goes_on(test: &Test) {
        let model = ModelServer::start(Script::function(|said: &Conversation| Turn::say(format!("{} messages", said.messages.len())))).await;
        workflow(test, "chatty", agent(&model, |data| data["tools"] = json!([]))).await;
        let say = async |session: &str| {
            let body = json!({"references": {"workflow": {"slug": "chatty"}}, "data": {"inputs": {"message": "hello"}}, "session_id": session});
            test.post("/workflows/invoke", body).await.expect(200)["data"]["outputs"]["text"].take()
        };
        assert_eq!([say("a").await, say("a").await, say("b").await, say("a").await], ["1 messages", "3 messages", "1 messages", "5 messages"]);
    }

    async fn the_same_key_is_the_same_run(test: &Test) {
        let model = ModelServer::start(Script::turns([Turn::say("hello")])).await;
        workflow(test, "chatty", agent(&model, |data| data["tools"] = json!([]))).await;
        let send = async |inputs: Value| {
            let body = json!({"references": {"workflow": {"slug": "chatty"}}, "data": {"inputs": inputs}});
            let request = http::Request::builder().method(Method::POST).uri("/workflows/invoke").header("authorization", format!("ApiKey {}", test.owner)).header("idempotency-key", "k1");
            test.send(crate::support::with_body(request, Some(body))).await
        };
        let first = send(json!({"message": "a"})).await.expect(200);
        assert_eq!(send(json!({"message": "a"})).await.expect(200)["meta"], first["meta"]);
        assert_eq!(model.asked().len(), 1);
        assert!(send(json!({"message": "b"})).await.expect(422)["status"]["message"].as_str().unwrap().contains("another run"));
    }

    async fn a_cancelled_run_ends_at_once(test: &Test) {
        let model = ModelServer::start(Script::turns([Turn::say("late").after(Duration::from_secs(30))])).await;
        workflow(test, "slow", agent(&model, |data| data["tools"] = json!([]))).await;
        let (answer, cancelled) = tokio::join!(invoke(test, "slow", json!({})), async {
            until("the model is asked", async || model.asked().len() == 1).await;
            let open = test.get("/workflows/runs?state=open").await.expect(200);
            let id = open["runs"][0]["id"].as_str().unwrap().to_owned();
            test.post(&format!("/workflows/runs/{id}/cancel"), json!({})).await.expect(200)["run"].take()
        });
        assert_eq!((&cancelled["agent"]["state"], &cancelled["status"]["code"]), (&json!("cancelled"), &json!(499)));
        let answer = answer.expect(499);
        assert_eq!(answer["meta"]["run_id"], cancelled["id"]);
        let again = test.post(&format!("/workflows/runs/{}/cancel", cancelled["id"].as_str().unwrap()), json!({})).await.expect(409);
        assert_eq!(again["code"], "run_ended");
        assert_eq!(run_of(test, &answer).await["status"]["message"], "The run was cancelled.");
        until("nothing is held in memory", async || test.yard.agent_runs.running() == 0).await;
    }

    async fn a_trigger_waits_for_its_run(test: &Test) {
        let model = ModelServer::start(Script::turns([Turn::say("seen").after(Duration::from_millis(300))])).await;
        workflow(test, "watcher", agent(&model, |data| data["tools"] = json!([]))).await;
        let hook = webhook(test, "watcher", json!({})).await;
        test.yard.triggers.start().await.unwrap();
        test.yard.agent_runs.start().await.unwrap();
        send(test, hook["url"].as_str().unwrap(), &[], "{\"id\": \"e1\"}").await.expect(202);
        until("the delivery is done", async || deliveries(test, json!({})).await.iter().any(|delivery| delivery["state"] == "done")).await;
        let delivery = &deliveries(test, json!({})).await[0];
        assert_eq!(delivery["data"]["result"]["outputs"]["text"], "seen", "{delivery:#}");
    }

    async fn many_tools_are_searched(test: &Test) {
        let whole = |integration: &str| json!({"type": "gateway_connection", "connection": {"provider": "native", "integration": integration}});
        let model = ModelServer::start(Script::function(|said: &Conversation| match said.turns() {
            0 => Turn::call("find_tools", json!({"query": "search for stories on hacker news"})),
            1 => Turn::call("call_tool", json!({"name": "nope", "arguments": {}})),
            _ => Turn::say(said.last_results().join(" ")),
        })).await;
        workflow(test, "searcher", agent(&model, |data| data["tools"] = json!([whole("hacker-news"), whole("wikipedia"), whole("open-meteo")]))).await;
        let answer = invoke(test, "searcher", json!({})).await.expect(200);
        assert_eq!(model.asked()[0].conversation.tools, ["find_tools", "call_tool"]);
        let found = model.asked()[1].conversation.last_results().join("");
        assert!(found.contains("tools__native__hacker-news__"), "{found}");
        assert!(answer["data"]["outputs"]["text"].as_str().unwrap().contains("There is no tool `nope`."));
    }

    async fn an_agent_has_the_tools_of_its_row(test: &Test) {
        let (fake, model) = (Fake::start().await, ModelServer::start(Script::turns([Turn::call(GET, json!({"owner": "o", "path": "p"})), Turn::say("read")])).await);
        test.connect_fake(&fake, "main").await;
        let made = test.post("/agents/", json!({"name": "triager", "agent_type": "worker", "tool_configs": [tool("GET_A_THING")]})).await;
        assert!(made.status.is_success(), "{}", made.text);
        let data = agent(&model, |data| {
            data.as_object_mut().unwrap().remove("tools");
            data["agent"] = json!("triager");
        });
        let (variant, _) = workflow(test, "triage", data).await;
        invoke(test, "triage", json!({})).await.expect(200);
        assert_eq!(model.asked()[0].conversation.tools, [GET]);
        // An agent may test itself, in the shape of the reference system too.
        let inner = json!({"instructions": {"agents_md": "Help."}, "llm": {"model": "openai/scripted", "extras": {"url": model.url()}}, "tools": [tool("GET_A_THING")], "runner": {"permissions": {"default": "allow"}}});
        commit(test, &variant, json!({"uri": "agenta:builtin:agent:v0", "parameters": {"agent": inner}})).await;
        let arguments = json!({"target": {"workflow_variant_id": variant}, "inputs": {"messages": [{"role": "user", "content": "go"}]}, "expectations": {"terminal_tool": GET}});
        let tested = test.call("tools.agenta.test_run", arguments).await.expect(200);
        let tested: Value = serde_json::from_str(tested["call"]["data"]["content"].as_str().unwrap()).unwrap();
        assert_eq!((&tested["verdict"], &tested["output"]["text"]), (&json!("pass"), &json!("read")), "{tested:#}");
        commit(test, &variant, json!({"uri": "agenta:builtin:agent:v0", "parameters": {"agent": {"llm": {"model": "openai/m"}, "harness": {"kind": "pi"}}}})).await;
        assert!(invoke(test, "triage", json!({})).await.expect(400)["status"]["message"].as_str().unwrap().contains("no harness `pi`"));
    }

    async fn what_leads_nowhere_is_refused_when_it_is_saved(test: &Test) {
        let (fake, model) = (Fake::start().await, ModelServer::start(Script::turns([Turn::say("x")])).await);
        test.connect_fake(&fake, "main").await;
        test.post("/agents/", json!({"name": "triager", "agent_type": "worker"})).await;
        for (change, part) in [
            (json!({"agent": "triagr", "tools": null}), "Did you mean `triager`?"),
            (json!({"model": {"api": "openai", "name": "m"}}), "`data.model.api`"),
            (json!({"model": {"api": "anthropic", "name": "m", "connection": "main"}}), "anthropic has no connection `main`; connect anthropic first"),
            (json!({"model": {"api": "openai_chat", "name": "m", "url": "http://10.0.0.1/v1"}}), "`data.model.url`"),
            (json!({"model": {"api": "openai_chat", "name": "m", "url": "https://x.example/v1", "headers": {"authorization": "Bearer {{secrets.nope}}"}}}), "`data.model.headers.authorization`"),
            (json!({"tools": [tool("MAKE_A_THNG")]}), "has no action `MAKE_A_THNG`"),
            (json!({"tools": [{"type": "code", "name": "c", "script": "1"}]}), "runs at the runner"),
            (json!({"limits": {"turn": 1}}), "Did you mean `turns`?"),
            (json!({"limits": {"usd": 1}}), "needs `data.model.prices`"),
            (json!({"instructions": null}), "`data.instructions`"),
            (json!({"url": "https://x.example"}), "`data.url` has no place"),
            (json!({"on_uncertain": "repeat"}), "must be one of: tell, stop"),
        ] {
            let data = agent(&model, |data| {
                for (name, value) in change.as_object().unwrap() {
                    data[name] = value.clone();
                }
            });
            let refused = test.post("/simple/workflows/", json!({"workflow": {"slug": "wrong", "name": "Wrong", "data": data}})).await;
            let detail = refused.detail(422);
            assert!(detail.contains(part), "{change}: {detail}");
        }
        let misplaced = json!({"workflow": {"slug": "wrong", "name": "Wrong", "data": {"kind": "echo", "instructions": "x"}}});
        assert!(test.post("/simple/workflows/", misplaced).await.detail(422).contains("belongs to workflows of kind agent"));
    }

    async fn an_agent_acts_with_the_accounts_of_its_end_user(test: &Test) {
        let fake = Fake::start().await;
        let model = ModelServer::start(Script::function(|said: &Conversation| {
            let tool = |part: &str| said.tools.iter().find(|tool| tool.contains(part)).cloned().unwrap_or_default();
            match (said.last_user(), said.turns_since_user()) {
                ("look", 0) => Turn::call(tool("GET_A_THING"), json!({"owner": "o", "path": "p"})),
                ("make", 0) => Turn::call(tool("MAKE_A_THING"), json!({"title": "paid"})),
                _ => Turn::say(format!("{} messages", said.messages.len())),
            }
        })).await;
        // Nobody has an account when the agent is saved: whose it will be is known when it runs.
        let auto = |action: &str| json!({"type": "gateway", "provider": "native", "integration": "fake", "action": action, "connection": "auto"});
        workflow(test, "helper", agent(&model, |data| data["tools"] = json!([auto("GET_A_THING"), auto("MAKE_A_THING")]))).await;
        connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        connect_for(test, &fake, "bob", None, "sk-bob-123456").await;
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let say = async |user: &str, message: &str| {
            let body = json!({"references": {"workflow": {"slug": "helper"}}, "data": {"inputs": {"message": message}}, "session_id": "s"});
            as_user(test, user, Method::POST, "/workflows/invoke", Some(body)).await
        };
        for (user, messages) in [("alice", "3 messages"), ("bob", "3 messages"), ("alice", "7 messages")] {
            assert_eq!(say(user, "look").await.expect(200)["data"]["outputs"]["text"], messages, "each has a session of their own");
            assert_eq!(key_used(&fake), format!("sk-{user}-123456"));
        }
        // As a model too.
        let asked = json!({"model": "agent:helper", "messages": [{"role": "user", "content": "look"}]});
        as_user(test, "bob", Method::POST, "/v1/chat/completions", Some(asked)).await.expect(200);
        assert_eq!(key_used(&fake), "sk-bob-123456");
        // A run that waits is its user's, and so is what it waits for.
        let answer = say("alice", "make").await.expect(202);
        let (run, approval) = (answer["meta"]["run_id"].as_str().unwrap(), answer["data"]["outputs"]["approval"]["id"].as_str().unwrap());
        let path = format!("/workflows/runs/{run}");
        as_user(test, "alice", Method::GET, &path, None).await.expect(200);
        for (method, path) in [(Method::GET, path.clone()), (Method::GET, format!("{path}/events")), (Method::POST, format!("{path}/cancel"))] {
            as_user(test, "bob", method, &path, None).await.expect(404);
        }
        assert_eq!(as_user(test, "bob", Method::GET, "/workflows/runs?state=open", None).await.expect(200)["count"], 0);
        assert_eq!(as_user(test, "bob", Method::GET, "/tools/approvals?status=pending", None).await.expect(200)["count"], 0);
        decide(test, approval, "approve").await;
        test.yard.agent_runs.start().await.unwrap();
        assert_eq!(ended(test, &answer).await["agent"]["state"], "done");
        assert_eq!(key_used(&fake), "sk-alice-123456");
        // Somebody who is forgotten leaves nothing, and what waits for them ends.
        let answer = say("alice", "make").await.expect(202);
        let export = test.get("/end-users/alice").await.expect(200);
        assert_eq!(export["data"]["agent_runs"].as_array().unwrap().len(), 4, "{export:#}");
        let forgotten = test.delete("/end-users/alice").await.expect(200)["forgotten"].take();
        assert_eq!(forgotten["agent_runs"], 4, "{forgotten}");
        test.get(&format!("/workflows/runs/{}", answer["meta"]["run_id"].as_str().unwrap())).await.expect(404);
        assert_eq!(test.get("/workflows/runs?state=open").await.expect(200)["count"], 0);
        assert_eq!(say("alice", "hello").await.expect(200)["data"]["outputs"]["text"], "1 messages", "the session is gone too");
        assert_eq!(say("bob", "hello").await.expect(200)["data"]["outputs"]["text"], "5 messages");
    }
}
