//! A real row of every kind that a path can name, and a valid body for every operation that takes one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use grants::Surface;
use http::Method;
use kernel::{Permission, Role};
use model_fake::{ModelServer, Script, Turn};
use serde_json::{Value, json};

use super::composio::is_composios;
use super::histories;
use super::operations::Operation;
use crate::approvals::ask_before;
use crate::oauth_server::granted;
use crate::support::{Database, Fake, Test, call_body, fake_connection, until};
use crate::triggers::{deliveries, send};

/// What rows are made in: a project with everything that rows hang on.
pub struct World {
    pub test: Test,
    pub fake: Fake,
    _model: ModelServer,
    number: AtomicU32,
    /// The token of the user session that was made last.
    session: Mutex<(String, String)>,
    /// Whose rows are made, an end user's with the slug of an account of theirs, or the project's own.
    user: Mutex<Option<(String, String)>>,
}

/// What an operation is called with.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub path: String,
    pub body: Option<Value>,
    /// Every id of a row that was made for it, by the name of its parameter.
    pub rows: BTreeMap<String, String>,
}

impl Request {
    /// Whether the caller said this itself.
    pub fn says(&self, text: &str) -> bool {
        self.path.contains(text) || self.body.as_ref().is_some_and(|body| body.to_string().contains(text))
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn secret(slug: &str) -> Value {
    json!({"slug": slug, "secret": {"kind": "custom_secret", "data": {"secret": {"format": "text", "content": "x"}}}})
}

impl World {
    pub async fn make(database: Database) -> Self {
        let test = Test::start(database).await;
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        test.yard.triggers.start().await.unwrap();
        // An agent that has tools makes a thing, which a person has to allow; one that has none answers.
        let model = ModelServer::start(Script::function(|conversation| match conversation.tools.first() {
            Some(tool) => Turn::call(tool.as_str(), json!({"title": "x"})),
            None => Turn::say("Hello."),
        }))
        .await;
        let agent = |tools: Value| {
            let asked = json!({"api": "openai_chat", "url": model.url(), "name": "scripted"});
            json!({"kind": "agent", "model": asked, "instructions": "Be brief.", "tools": tools})
        };
        let make = json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "MAKE_A_THING", "connection": "auto"});
        let (talker, maker) = (agent(json!([])), agent(json!([make])));
        let world = Self { test, fake, _model: model, number: AtomicU32::new(0), session: Mutex::default(), user: Mutex::default() };
        world.workflow("talker", &talker).await;
        world.workflow("maker", &maker).await;
        world.workflow("echo", &json!({"kind": "echo"})).await;
        world.workflow("target", &json!({"kind": "http", "url": format!("{}/target", world.fake.url)})).await;
        ask_before(&world.test, "tools.native.fake.MAKE_*", "ask").await;
        world
    }

    /// From now on rows are an end user's, who has an account of the fake service, or the project's own again.
    pub async fn make_for(&self, user: Option<&str>) {
        *self.test.acts_for.lock().unwrap() = user.map(str::to_owned);
        let account = match user {
            None => None,
            Some(user) => Some((user.to_owned(), text(&self.connect_for(user, &format!("sk-{user}-123456")).await["slug"]))),
        };
        *self.user.lock().unwrap() = account;
    }

    /// Whose rows are made, as Composio's API names them.
    pub fn user(&self) -> String {
        self.user.lock().unwrap().as_ref().map_or_else(|| "default".to_owned(), |(user, _)| user.clone())
    }

    /// The account that configs name.
    fn slug(&self) -> String {
        self.user.lock().unwrap().as_ref().map_or_else(|| "main".to_owned(), |(_, slug)| slug.clone())
    }

    /// The account that calls go through.
    fn account(&self) -> &'static str {
        if self.user.lock().unwrap().is_some() { "auto" } else { "main" }
    }

    fn ref_to(&self, action: &str) -> String {
        format!("tools.native.fake.{action}.{}", self.account())
    }

    /// The token of a user session that was made.
    pub fn token(&self, session: &str) -> String {
        let (id, token) = self.session.lock().unwrap().clone();
        assert_eq!(id, session);
        token
    }

    async fn connect_for(&self, user: &str, key: &str) -> Value {
        let data = json!({"auth_scheme": "api_key", "credentials": {"base": self.fake.url, "api_key": key}});
        let connection = json!({"provider_key": "native", "integration_key": "fake", "end_user": user, "data": data});
        self.test.post("/tools/connections", json!({"connection": connection})).await.expect(200)["connection"].take()
    }

    /// A name that nothing has yet.
    pub fn name(&self) -> String {
        format!("row-{}", self.number.fetch_add(1, Ordering::SeqCst))
    }

    async fn workflow(&self, slug: &str, data: &Value) -> Value {
        let body = json!({"workflow": {"slug": slug, "data": data}});
        self.test.post("/simple/workflows", body).await.expect(200)["workflow"].take()
    }

    async fn subscription(&self, workflow: &str) -> Value {
        let data = json!({"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": workflow}}});
        let body = json!({"subscription": {"name": self.name(), "data": data}});
        self.test.post("/triggers/subscriptions", body).await.expect(200)["subscription"].take()
    }

    async fn schedule(&self) -> Value {
        self.test.post("/triggers/schedules", self.new_schedule(None)).await.expect(200)["schedule"].take()
    }

    fn new_schedule(&self, id: Option<&str>) -> Value {
        let data = json!({"event_key": "tick", "schedule": "0 0 1 1 *", "references": {"workflow": {"slug": "echo"}}});
        json!({"schedule": {"id": id, "name": self.name(), "data": data}})
    }

    /// A delivery whose run was dispatched and has not ended, or one that has ended.
    async fn delivery(&self, is_over: bool) -> Value {
        let hook = self.subscription(if is_over { "echo" } else { "target" }).await;
        if !is_over {
            self.fake.answer_target(&[202]);
        }
        send(&self.test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        let (filter, state) = (json!({"subscription_id": hook["id"]}), if is_over { "done" } else { "waiting" });
        until(state, async || deliveries(&self.test, filter.clone()).await.iter().any(|found| found["state"] == state)).await;
        deliveries(&self.test, filter).await.remove(0)
    }

    async fn agent(&self) -> Value {
        let tool = json!({"id": "fake", "config": {"connection": "main"}});
        let body = json!({"name": self.name(), "agent_type": "custom", "tool_ids": [tool]});
        self.test.post("/agents", body).await.expect(200)
    }

    async fn import(&self) -> Value {
        let name = self.name();
        let document =
            json!({"openapi": "3.1.0", "info": {"title": name}, "servers": [{"url": "https://example.com"}], "paths": {"/x": {"get": {}}}});
        let url = self.fake.put_file(&format!("{name}.json"), &document.to_string());
        self.test.post("/tools/imports/openapi", json!({"import": {"url": url}})).await.expect(200)["import"].take()
    }

    async fn learned(&self) -> String {
        let sentence = format!("show me the fake thing called {}", self.name());
        let body = json!({"use_cases": [sentence]});
        self.test.post("/tools/discover", body).await.expect(200);
        self.test.call(&self.ref_to("GET_A_THING"), json!({"owner": "o", "path": "p"})).await.expect(200);
        let newest = async || self.test.get("/tools/discover/learned").await.expect(200)["use_cases"].get(0).cloned().unwrap_or_default();
        until("a use case is learned", async || newest().await["use_case"] == sentence.as_str()).await;
        text(&newest().await["id"])
    }

    /// A project has few notices, so the oldest makes room.
    async fn new_notice(&self) -> Value {
        let found = self.test.get("/tools/approvals/notices").await.expect(200);
        let found = found["notices"].as_array().unwrap();
        if found.len() > 7 {
            self.test.delete(&format!("/tools/approvals/notices/{}", text(&found[0]["id"]))).await.expect(204);
        }
        json!({"notice": {"kind": "webhook", "url": format!("{}/echo/notice", self.fake.url)}})
    }

    /// The same for hooks.
    async fn new_hook(&self) -> Value {
        let found = self.test.get("/tools/connections/hooks").await.expect(200);
        let found = found["hooks"].as_array().unwrap();
        if found.len() > 3 {
            self.test.delete(&format!("/tools/connections/hooks/{}", text(&found[0]["id"]))).await.expect(204);
        }
        json!({"hook": {"url": format!("{}/echo/hook", self.fake.url)}})
    }

    async fn dead_message(&self) -> String {
        self.test.connect_fake(&self.fake, &self.name()).await;
        self.test.yard.db.execute("update connection_messages set state = 'dead'", store::args![]).await.unwrap();
        let hooks = self.test.get("/tools/connections/hooks").await.expect(200);
        let newest = text(&hooks["hooks"].as_array().unwrap().last().unwrap()["id"]);
        let told = self.test.get(&format!("/tools/connections/hooks/{newest}/messages")).await.expect(200);
        text(&told["messages"][0]["id"])
    }

    async fn invitation(&self) -> Value {
        self.test.post("/people/invitations", json!({"invitation": {"role": "viewer"}})).await.expect(200)
    }

    async fn member(&self) -> String {
        let (accounts, email) = (&self.test.yard.accounts, format!("{}@example.com", self.name()));
        let (user, project) = (accounts.create_user(&email, None).await.unwrap().id, accounts.find_project("default").await.unwrap().id);
        accounts.set_member(project, user, Role::Viewer, &accounts::Source::Invited).await.unwrap();
        let members = self.test.get("/people/members?limit=500").await.expect(200);
        let member = members["members"].as_array().unwrap().iter().find(|member| member["email"] == email.as_str());
        text(&member.unwrap()["id"])
    }

    /// An end user with an account.
    async fn end_user(&self) -> String {
        let name = self.name();
        self.connect_for(&name, "sk-fake-123456").await;
        name
    }

    async fn user_session(&self) -> String {
        let new = json!({"session": {"end_user": self.end_user().await, "apps": ["fake"], "may_approve": true,
            "triggers": {"webhook": true}}});
        let made = self.test.post("/sessions", new).await.expect(200)["session"].take();
        *self.session.lock().unwrap() = (text(&made["id"]), text(&made["token"]));
        text(&made["id"])
    }

    fn new_session_trigger(&self) -> Value {
        json!({"trigger": {"integration": "fake", "event": "THING_CHANGED", "config": {"box": self.name()}}})
    }

    /// A trigger of the user session that was made last.
    async fn watches_in_session(&self) -> String {
        let (id, token) = self.session.lock().unwrap().clone();
        let path = format!("/sessions/{id}/triggers");
        let made = self.test.request(Method::POST, &path, Some(format!("Bearer {token}")), Some(self.new_session_trigger())).await;
        text(&made.expect(200)["trigger"]["id"])
    }

    /// A call that waits in the user session that was made last.
    async fn waits_in_session(&self) -> String {
        let (id, token) = self.session.lock().unwrap().clone();
        let call = call_body("tools.native.fake.MAKE_A_THING.auto", &json!({"title": self.name()}));
        let waiting = self.test.request(Method::POST, &format!("/sessions/{id}/call"), Some(format!("Bearer {token}")), Some(call)).await;
        text(&waiting.expect(202)["approval"]["id"])
    }

    async fn oauth_app(&self, path: &str) -> String {
        let body = json!({"oauth_app": {"integration_key": "oidc", "client_id": self.name(), "client_secret": "s"}});
        let reply = if path.starts_with("/admin/") {
            self.test.admin(Method::POST, "/admin/oauth-apps", Some(body)).await
        } else {
            self.test.post("/tools/oauth-apps", body).await
        };
        text(&reply.expect(200)["oauth_app"]["id"])
    }

    /// A new row of the kind that a parameter names.
    async fn row(&self, name: &str, operation: &Operation) -> String {
        if is_composios(operation)
            && let Some(row) = Box::pin(self.composio_row(name, operation)).await
        {
            return row;
        }
        match name {
            "connection_id" => text(&self.test.connect_fake(&self.fake, &self.name()).await["id"]),
            "import_id" => text(&self.import().await["id"]),
            name if histories::family(name).is_some() => self.part_of_history(name).await,
            "run_id" => {
                // Only runs of agents are followed, and only those that have not ended are cancelled.
                let (slug, status) = match operation.id.as_str() {
                    "follow_workflow_run" => ("talker", 200),
                    "cancel_workflow_run" => ("maker", 202),
                    _ => ("echo", 200),
                };
                let run = json!({"references": {"workflow": {"slug": slug}}});
                text(&self.test.post("/workflows/invoke", run).await.expect(status)["meta"]["run_id"])
            }
            "agent_id" => text(&self.agent().await["public_id"]),
            "subscription_id" => text(&self.subscription("echo").await["id"]),
            "schedule_id" => text(&self.schedule().await["id"]),
            "delivery_id" => text(&self.delivery(operation.path.ends_with("/retry")).await["id"]),
            "event_row_id" => text(&self.delivery(true).await["event_row_id"]),
            "call_id" => {
                let called = self.test.call(&self.ref_to("GET_A_THING"), json!({"owner": "o", "path": "p"})).await;
                called.expect(200);
                text(&self.test.get("/tools/calls?limit=1").await.expect(200)["calls"][0]["id"])
            }
            "notice_id" => {
                let body = self.new_notice().await;
                text(&self.test.post("/tools/approvals/notices", body).await.expect(200)["notice"]["id"])
            }
            "approval_id" if operation.id == "decide_user_session_approval" => self.waits_in_session().await,
            "trigger_id" => self.watches_in_session().await,
            "approval_id" => {
                let waiting = self.test.call(&self.ref_to("MAKE_A_THING"), json!({"title": self.name()})).await;
                text(&waiting.expect(202)["approval"]["id"])
            }
            "app_id" => self.oauth_app(&operation.path).await,
            "secret_id" => text(&self.test.post("/secrets", secret(&self.name())).await.expect(200)["id"]),
            "id" if operation.path == "/tools/discover/learned/{id}" => self.learned().await,
            "project_id" => {
                let made = json!({"project": {"slug": self.name()}});
                text(&self.test.admin(Method::POST, "/admin/projects", Some(made)).await.expect(200)["project"]["id"])
            }
            "key_id" if operation.path == "/keys/{key_id}" => {
                let made = json!({"key": {"name": self.name(), "role": "viewer"}});
                text(&self.test.post("/keys", made).await.expect(200)["key"]["id"])
            }
            "key_id" => {
                let project = &self.test.admin(Method::GET, "/admin/projects", None).await.expect(200)["projects"][0]["id"];
                let made = json!({"key": {"project_id": project}});
                text(&self.test.admin(Method::POST, "/admin/keys", Some(made)).await.expect(200)["key"]["id"])
            }
            "app" => {
                let body = json!({"oauth_app": {"integration_key": "oidc", "client_id": self.name()}});
                let made = self.test.post("/tools/oauth-apps", body).await.expect(200);
                made["oauth_app"]["redirect_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
            }
            "token" => {
                let hook = self.subscription("echo").await;
                hook["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
            }
            "ticket" => {
                let body = fake_connection(&self.name(), &json!({"auth_scheme": "api_key"}));
                let made = self.test.post("/tools/connections", body).await.expect(200);
                made["connection"]["status"]["redirect_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
            }
            // Names of what the binary has for everybody.
            "provider_key" => "native".to_owned(),
            "integration_key" if operation.parameters.contains(&"token".to_owned()) => "webhook".to_owned(),
            "action_key" => "GET_A_THING".to_owned(),
            "event_key" => "THING_MADE".to_owned(),
            // Removing an app takes its connections with it, and the other rows need those of `fake`.
            "app_name" if operation.id == "remove_app" => {
                self.test.post("/tools/add-to-workspace", json!({"app_name": "hacker-news"})).await.expect(200);
                "hacker-news".to_owned()
            }
            "integration_key" | "app_name" | "tool" => "fake".to_owned(),
            "op" => "discover_tools".to_owned(),
            "member_id" => self.member().await,
            "invitation_id" => text(&self.invitation().await["invitation"]["id"]),
            "invitation" => text(&self.invitation().await["link"]).rsplit('/').next().unwrap().to_owned(),
            "session_id" if !operation.path.starts_with("/people") => self.user_session().await,
            "hook_id" => {
                let body = self.new_hook().await;
                text(&self.test.post("/tools/connections/hooks", body).await.expect(200)["hook"]["id"])
            }
            // A message of the hook that was made last, which nobody tries any more.
            "message_id" => self.dead_message().await,
            "end_user" => self.end_user().await,
            "session_id" => {
                let key = self.test.key("default", Role::Viewer, None).await;
                self.test.yard.people.by_key(&key.into(), &people::Visitor::default()).await.unwrap().id.to_string()
            }
            "link" => {
                let user = self.test.yard.accounts.create_user(&format!("{}@example.com", self.name()), None).await.unwrap();
                self.test.yard.people.make_link(user.id).await.unwrap().expose().to_owned()
            }
            "provider" => "nobody".to_owned(),
            "grant_id" => granted(&self.test, "default", &Permission::ALL, Surface::Api).await.0.to_string(),
            other => panic!("nothing makes a row for `{{{other}}}` of {} {}: add one here", operation.method, operation.path),
        }
    }

    /// The operation as its owner would call it, on new rows.
    pub async fn request(&self, operation: &Operation) -> Request {
        let mut rows = BTreeMap::new();
        let mut path = operation.path.clone();
        for name in &operation.parameters {
            let id = self.row(name, operation).await;
            path = path.replace(&format!("{{{name}}}"), &id);
            rows.insert(name.clone(), id);
        }
        if operation.id == "test_trigger_subscription" {
            path += "?wait=0";
        }
        let body = if operation.takes_body { Some(self.body(operation, &mut rows).await) } else { None };
        Request { method: operation.method.clone(), path, body, rows }
    }

    /// A row that only the body names.
    pub async fn named(&self, rows: &mut BTreeMap<String, String>, name: &str, operation: &Operation) -> String {
        let id = self.row(name, operation).await;
        rows.insert(name.to_owned(), id.clone());
        id
    }

    /// A body that is taken.
    async fn body(&self, operation: &Operation, rows: &mut BTreeMap<String, String>) -> Value {
        if let Some(body) = Box::pin(self.history_body(operation, rows)).await {
            return body;
        }
        if let Some(body) = Box::pin(self.composio_body(operation, rows)).await {
            return body;
        }
        let name = self.name();
        let get = call_body(&self.ref_to("GET_A_THING"), &json!({"owner": "o", "path": "p"}));
        let gateway =
            json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "GET_A_THING", "connection": self.slug()});
        let agent = json!({"name": name, "agent_type": "custom", "tool_ids": ["fake"]});
        match operation.id.as_str() {
            "create_simple_accounts" => json!({"accounts": {"a": {"user": {"email": format!("{name}@example.com")}}}}),
            "delete_simple_accounts" => {
                let email = format!("{name}@example.com");
                let made = json!({"accounts": {"a": {"user": {"email": email}}}});
                self.test.admin(Method::POST, "/admin/simple/accounts", Some(made)).await.expect(200);
                json!({"accounts": {"a": {"user": {"email": email}}}, "confirm": "delete"})
            }
            "create_project" => json!({"project": {"slug": name}}),
            "create_secret" => secret(&name),
            "update_secret" => json!({"header": {"description": name}}),
            "create_key" => json!({"key": {"project_id": self.named(rows, "project_id", operation).await}}),
            "create_project_key" => json!({"key": {"name": name, "role": "viewer"}}),
            "set_oauth_app" | "set_deployment_oauth_app" => json!({"oauth_app": {"integration_key": "oidc", "client_id": name}}),
            "create_tool_connection" | "create_trigger_connection" => {
                let credentials = json!({"base": self.fake.url, "api_key": "sk-fake-123456"});
                fake_connection(&name, &json!({"auth_scheme": "api_key", "credentials": credentials}))
            }
            "edit_tool_connection" | "edit_trigger_connection" => json!({"connection": {"name": name}}),
            "import_openapi" => {
                let paths = json!({"/x": {"get": {}}});
                let document =
                    json!({"openapi": "3.1.0", "info": {"title": name}, "servers": [{"url": "https://example.com"}], "paths": paths});
                json!({"import": {"document": document}})
            }
            "import_mcp" => json!({"import": {"key": name, "url": format!("{}/mcp", self.fake.url)}}),
            "resolve_tools" | "resolve_tool_specs" => json!({"tools": [gateway]}),
            "discover_tool_capabilities" | "discover_triggers" | "find_user_session_tools" => json!({"use_cases": ["read a fake thing"]}),
            "set_learning" => json!({"learns": true}),
            "call_platform_op" => json!({"arguments": {"use_cases": ["read a fake thing"]}}),
            "create_approval_notice" => self.new_notice().await,
            "set_call_keeping" => json!({"days": 1}),
            "set_branding" => json!({"name": name, "accent": "#2457d6"}),
            "set_retention" => json!({"call_days": 30}),
            "set_connect_links" => json!({"return_to": ["https://app.example.com/done"], "origins": ["https://app.example.com"]}),
            "check_workflow" => json!({"workflow": {"slug": name, "data": {"kind": "echo"}}}),
            "set_user_limits" => json!({"calls_per_day": 100_000}),
            "decide_tool_approval" | "decide_user_session_approval" => json!({"decision": "deny"}),
            "set_tool_permissions" => json!({"permissions": {"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": "ask"}]}}),
            "call_tool" | "call_as_agent" => get,
            "explain_tool_permission" => get["data"]["function"].clone(),
            "add_app" => json!({"app_name": "fake"}),
            "create_agent" => agent,
            "create_agents" => json!([agent]),
            "edit_agent" => json!({"description": name}),
            "add_agent_tool" => json!({"id": "fake"}),
            "fetch_agent_toolset" => json!({"prompt": "read a fake thing"}),
            "create_agent_completion" => json!({"model": "agent:talker", "messages": [{"role": "user", "content": name}]}),
            "create_agent_response" => json!({"model": "agent:talker", "input": name}),
            "invoke_workflow" => {
                json!({"references": {"workflow": {"id": self.named(rows, "workflow_id", operation).await}}, "data": {"inputs": {"a": 1}}})
            }
            "create_trigger_subscription" | "test_trigger_subscription" => {
                let connection = self.named(rows, "connection_id", operation).await;
                let data = json!({"event_key": "THING_MADE", "references": {"workflow": {"slug": "echo"}}});
                json!({"subscription": {"connection_id": connection, "data": data}})
            }
            "edit_trigger_subscription" => {
                let data = json!({"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "echo"}}});
                json!({"subscription": {"id": rows["subscription_id"], "name": name, "data": data}})
            }
            "query_trigger_subscriptions" => json!({"subscription": {"name": "row-"}}),
            "create_trigger_schedule" | "preview_trigger_schedule" => self.new_schedule(None),
            "edit_trigger_schedule" => self.new_schedule(Some(&rows["schedule_id"])),
            "query_trigger_schedules" => json!({"schedule": {"name": "row-"}}),
            "query_trigger_deliveries" | "replay_trigger_deliveries" => {
                json!({"delivery": {"subscription_id": self.named(rows, "subscription_id", operation).await}})
            }
            "complete_trigger_delivery" => json!({"status": {"code": 200}}),
            "preview_trigger_inputs" => {
                let delivery = text(&self.delivery(true).await["id"]);
                rows.insert("delivery_id".to_owned(), delivery.clone());
                json!({"delivery_id": delivery, "inputs_fields": {"all": "$.event"}})
            }
            "ingest_native_event" => json!({"happened": true}),
            "ingest_composio_event" => json!({"type": "nothing"}),
            "submit_connect_page"
            | "sign_in"
            | "sign_out"
            | "use_sign_in_link"
            | "accept_invitation"
            | "change_account"
            | "oauth_token"
            | "oauth_revoke"
            | "oauth_introspect"
            | "begin_oauth_device"
            | "decide_consent"
            | "decide_device" => json!(null),
            "register_oauth_client" => json!({"redirect_uris": ["https://client.example/cb"]}),
            "create_invitation" => json!({"invitation": {"role": "viewer", "email": format!("{name}@example.com")}}),
            "edit_member" => json!({"member": {"role": "viewer"}}),
            "create_connection_hook" => self.new_hook().await,
            "create_user_session" => json!({"session": {"end_user": name, "apps": ["fake"]}}),
            "call_user_session_tool" => call_body("tools.native.fake.GET_A_THING.auto", &json!({"owner": "o", "path": "p"})),
            "connect_user_session_account" => json!({"integration": "fake"}),
            "create_user_session_trigger" => self.new_session_trigger(),
            "mcp" | "mcp_agent" | "mcp_session" => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
            other => panic!("there is no valid body for `{other}` ({} {}): add one here", operation.method, operation.path),
        }
    }
}
