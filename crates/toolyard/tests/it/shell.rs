//! What people meet at the command line: names in place of ids, types from schemas, questions before something stops, tables and help.

use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::binary::{Server, program, run};
use crate::support::Fake;

/// A server with a directory of its own, and its commands.
struct Shell {
    dir: TempDir,
    server: Server,
    fake: Fake,
}

impl Shell {
    async fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let fake = Fake::start().await;
        let server = Server::start(dir.path(), |_| {}).await;
        Self { dir, server, fake }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(self.dir.path());
        command.args(args).env("TOOLYARD_URL", &self.server.url);
        command
    }

    /// Exit code, stdout, stderr.
    async fn run(&self, args: &[&str]) -> (i32, String, String) {
        run(self.command(args)).await
    }

    /// The output of a command that succeeds.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> impl Future<Output = String> {
        let (running, said) = (run(self.command(args)), format!("{args:?}"));
        async move {
            let (code, out, err) = running.await;
            assert_eq!(code, 0, "{said}: {out}{err}");
            out
        }
    }

    /// What a command says that fails.
    async fn fails(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args).await;
        assert_eq!(code, 1, "{args:?}: {out}{err}");
        err
    }

    async fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args).await).unwrap()
    }

    async fn connect_fake(&self) {
        let base = format!("base={}", self.fake.url);
        self.ok(&["connect", "fake", "--field", &base, "--field", "api_key=sk-123456789"]).await;
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Imports an API of one action as `openapi/orders`.
    async fn import_orders(&self) {
        let document = json!({"openapi": "3.0.3", "info": {"title": "Orders", "version": "1"}, "servers": [{"url": format!("{}/echo", self.fake.url)}],
            "paths": {"/orders": {"get": {"operationId": "listOrders", "parameters": [{"name": "customer", "in": "query", "schema": {"type": "string"}}]}}}});
        let file = self.file("orders.json", &document.to_string());
        self.ok(&["import", "openapi", &file, "--auth", "header:X-Key"]).await;
    }

    /// Runs a command on a terminal of its own, of this width; what it showed, and its exit code.
    async fn on_terminal(&self, width: u16, env: &[(&str, &str)], input: &str, args: &[&str]) -> (i32, String) {
        const PTY: &str = "import fcntl, os, pty, struct, sys, termios\n\
            pid, fd = pty.fork()\n\
            if pid == 0:\n    \
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[1]), 0, 0))\n    \
                os.execv(sys.argv[3], sys.argv[3:])\n\
            os.write(fd, sys.argv[2].encode())\n\
            while True:\n    \
                try:\n        data = os.read(fd, 65536)\n    \
                except OSError:\n        break\n    \
                if not data:\n        break\n    \
                os.write(1, data)\n\
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
        let plain = self.command(&[]);
        let mut command = Command::new("python3");
        command.env_clear().current_dir(self.dir.path()).stdin(Stdio::null()).kill_on_drop(true);
        command.envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm").env("TZ", "Europe/Berlin").envs(env.iter().copied());
        command.args(["-c", PTY, &width.to_string(), input, env!("CARGO_BIN_EXE_toolyard")]).args(args);
        let (code, out, err) = run(command).await;
        assert_eq!(err, "", "the terminal itself works");
        (code, out.replace("\r\n", "\n"))
    }
}

#[tokio::test]
async fn an_integration_is_found_by_its_key_alone() {
    let shell = Shell::start().await;
    shell.import_orders().await;
    let listed = shell.ok(&["integrations", "--search", "orders"]).await;
    assert!(listed.contains("\nopenapi/orders\tOrders\t1\t0\t"), "{listed}");
    assert!(shell.ok(&["integrations"]).await.contains("\ngithub\t"));
    assert_eq!(shell.json(&["integrations", "--provider", "openapi", "--json"]).await["integrations"][0]["provider_key"], "openapi");
    assert!(shell.ok(&["integrations", "show", "orders"]).await.starts_with("Orders (openapi/orders)\n"));
    let (_, out, err) = shell.run(&["connect", "orders", "--field", "api_key=sk-123456789"]).await;
    assert!(out == "connected openapi/orders as orders-main\n" && err.contains("not checked"), "{out}{err}");
    let sent = shell.json(&["call", "orders", "list_orders", "--arg", "customer=7"]).await;
    assert_eq!(sent["query"], "customer=7");
    assert_eq!(shell.json(&["call", "openapi/orders", "list_orders"]).await["query"], Value::Null);
    let made = shell.json(&["agent", "create", "Clerk", "--app", "openapi/orders", "--json"]).await;
    assert_eq!(made["tools"][0]["catalog_id"], "openapi.orders");
    for command in [&["connect", "ordrs"][..], &["call", "ordrs", "X"], &["integrations", "show", "ordrs"], &["trigger", "events", "ordrs"]]
    {
        let error = shell.fails(command).await;
        assert!(error.contains("there is no integration `ordrs`. Did you mean `orders`?"), "{command:?}: {error}");
    }
}

#[tokio::test]
async fn names_and_the_ends_of_ids_stand_for_ids() {
    let shell = Shell::start().await;
    shell.connect_fake().await;
    let end = |id: &Value| id.as_str().unwrap()[28..].to_owned();
    assert_eq!(shell.ok(&["connections", "refresh", "fake-main"]).await, "the connection is fresh\n");
    let connection = shell.json(&["connections", "--json"]).await["connections"][0]["id"].clone();
    assert_eq!(shell.ok(&["connections", "refresh", &end(&connection)]).await, "the connection is fresh\n");
    assert!(shell.fails(&["connections", "refresh", "fake-mian"]).await.contains("Did you mean `fake-main`?"));

    shell.ok(&["permissions", "ask", "tools.native.fake.MAKE_A_THING.*"]).await;
    shell.run(&["call", "fake", "MAKE_A_THING", "--arg", "title=x"]).await;
    let approval = shell.json(&["approval", "--json"]).await["approvals"][0]["id"].clone();
    assert!(shell.ok(&["approval", "approve", &end(&approval)]).await.starts_with("approved"));

    let workflow = shell.file("say.json", r#"{"kind": "echo"}"#);
    let workflow = shell.json(&["workflow", "create", "say", "--name", "Say it", "--file", &workflow, "--json"]).await;
    let workflow = workflow["workflow"]["id"].as_str().unwrap();
    shell.ok(&["workflow", "run", workflow]).await;
    assert!(shell.ok(&["workflow", "show", "Say it"]).await.starts_with("say, version 1\n"));
    assert!(shell.fails(&["workflow", "run", "sayit"]).await.contains("Did you mean `Say it`?"));
    let runs = shell.ok(&["workflow", "runs", &workflow[28..]]).await;
    let cells: Vec<&str> = runs.trim_end_matches('\n').split('\t').collect();
    assert_eq!(cells[4], "say", "{runs}");
    assert!(shell.ok(&["workflow", "runs", "show", &cells[3][28..]]).await.starts_with("200 "));

    shell.ok(&["trigger", "schedule", "0 9 * * *", "--workflow", "say", "--name", "mornings"]).await;
    let schedule = shell.json(&["trigger", "show", "mornings", "--json"]).await["schedule"]["id"].clone();
    assert!(shell.ok(&["trigger", "run", &end(&schedule)]).await.starts_with("running mornings"));
    let listed = shell.ok(&["trigger", "deliveries"]).await;
    let cells: Vec<&str> = listed.trim_end_matches('\n').split('\t').collect();
    assert_eq!(cells[5..8], ["SCHEDULE", "mornings", "say"], "{listed}");
    assert!(shell.ok(&["trigger", "show", &cells[4][28..]]).await.starts_with(&format!("delivery {}", cells[4])));

    shell.ok(&["project", "create", "blue", "--name", "Blue"]).await;
    let project = shell.json(&["project", "list", "--json"]).await[1]["id"].clone();
    shell.ok(&["key", "create", "--project", &end(&project), "--name", "runner"]).await;
    let keys = shell.ok(&["key", "list"]).await;
    let rows: Vec<Vec<&str>> = keys.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows[0][6], rows[1][1], rows[1][6], rows[1][7]), ("default", "runner", "blue", ""), "{keys}");
    assert!(rows[0][7].starts_with("20"), "the first key was used: {keys}");
    assert!(shell.ok(&["key", "revoke", "runner"]).await.contains("revoked key"));
    assert!(shell.fails(&["key", "revoke", "runner"]).await.contains("there is no key `runner`"));
}

#[tokio::test]
async fn arguments_have_the_type_that_the_schema_names() {
    let shell = Shell::start().await;
    shell.connect_fake().await;
    let sent = shell.json(&["call", "fake", "MAKE_A_THING", "--arg", "title=1", "--arg", "dry=true", "--arg", "labels=[\"a\"]"]).await;
    assert_eq!((&sent["body"], &sent["query"]), (&json!({"title": "1", "labels": ["a"]}), &json!("dry=true&sig=…")));
    let error = shell.fails(&["call", "fake", "MAKE_A_THING", "--arg", "title=x", "--arg", "labels=a"]).await;
    assert!(error.contains("--arg labels=a: `labels` must be a JSON list"), "{error}");
    let data = r#"{"kind": "echo", "schemas": {"inputs": {"properties": {"id": {"type": "string"}, "n": {"type": "integer"}}}}}"#;
    shell.ok(&["workflow", "create", "say", "--file", &shell.file("say.json", data)]).await;
    assert_eq!(shell.json(&["call", "workflow.variant.say", "--arg", "id=1", "--arg", "n=1"]).await, json!({"id": "1", "n": 1}));
    let data = shell.file("free.json", r#"{"kind": "echo"}"#);
    shell.ok(&["workflow", "create", "free", "--file", &data]).await;
    let (_, out, err) = shell.run(&["call", "workflow.variant.free", "--arg", "id=1"]).await;
    assert!(out.contains("\"id\": 1") && err.contains("there is no schema to say what `id` is; `1` is read as JSON"), "{out}{err}");
    let error = shell.fails(&["ops", "call", "discover_tools", "--arg", "use_cases=send mail"]).await;
    assert!(error.contains("`use_cases` must be a JSON list"), "{error}");
}

#[tokio::test]
async fn connect_picks_up_the_attempt_that_waits() {
    let shell = Shell::start().await;
    let slugs = async || {
        let all = shell.json(&["connections", "--json"]).await;
        all["connections"].as_array().unwrap().iter().map(|row| row["slug"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = shell.ok(&["connect", "github", "--no-wait"]).await;
    let (_, again, err) = shell.run(&["connect", "github", "--no-wait"]).await;
    assert!(err.contains("picking up github-main") && again.contains("/connect/") && again != first, "{again}{err}");
    shell.ok(&["connect", "github", "--slug", "github-main", "--no-wait"]).await;
    assert!(
        shell.ok(&["connections"]).await.ends_with("\twaiting\tnobody finished it; `toolyard connect github --slug github-main` goes on\n")
    );
    assert_eq!(slugs().await, ["github-main"]);
    shell.ok(&["connect", "fake", "--no-wait"]).await;
    shell.connect_fake().await;
    assert_eq!(slugs().await, ["fake-main", "github-main"]);
    shell.connect_fake().await;
    assert_eq!(slugs().await, ["fake-main-2", "fake-main", "github-main"], "one that is connected is not taken over");
}

#[tokio::test]
async fn what_is_in_use_is_not_deleted_by_the_way() {
    let shell = Shell::start().await;
    shell.connect_fake().await;
    shell.import_orders().await;
    shell.ok(&["connect", "orders", "--field", "api_key=sk-123456789"]).await;
    let steps = r#"{"kind": "steps", "steps": [{"name": "make", "call": "tools.native.fake.MAKE_A_THING.fake-main", "arguments": {"title": "x"}}]}"#;
    shell.ok(&["workflow", "create", "maker", "--file", &shell.file("maker.json", steps)]).await;
    shell.ok(&["trigger", "schedule", "0 9 * * *", "--workflow", "maker", "--name", "mornings"]).await;
    shell.ok(&["workflow", "deploy", "maker", "--to", "staging"]).await;
    shell
        .ok(&[
            "trigger",
            "create",
            "THING_CHANGED",
            "--connection",
            "fake-main",
            "--set",
            "box=1",
            "--workflow",
            "maker",
            "--name",
            "things",
        ])
        .await;
    shell.ok(&["agent", "create", "Clerk", "--app", "orders", "--app", "fake"]).await;
    shell.ok(&["oauth-app", "set", "oidc", "--client-id", "c", "--client-secret", "s"]).await;

    let connection = ["subscription things (THING_CHANGED)", "agent Clerk, which has FAKE", "workflow maker"];
    let users = shell.ok(&["connections", "consumers", "fake-main"]).await;
    assert!(["workflow\tmaker\t", "subscription\tthings\t", "agent\tClerk\t"].iter().all(|user| users.contains(user)), "{users}");
    for (args, stops) in [
        (&["connections", "delete", "fake-main"][..], &connection[..]),
        (&["connections", "revoke", "fake-main"], &connection),
        (&["import", "remove", "orders"], &["connection orders-main", "agent Clerk, which has ORDERS"]),
        (&["workflow", "archive", "maker"], &["subscription things", "schedule mornings (0 9 * * *)", "what is deployed to staging"]),
        (&["environment", "archive", "staging"], &["what is deployed: maker (version 1)"]),
        (&["agent", "delete", "Clerk"], &["its apps (ORDERS, FAKE)"]),
        (&["key", "revoke", "first key"], &["whoever uses it; the last use was at 20"]),
        (&["project", "delete", "default"], &["everything in it: 1 keys, 2 connections"]),
    ] {
        let error = shell.fails(args).await;
        assert!(error.ends_with("Say --yes to do it\n") && stops.iter().all(|stop| error.contains(stop)), "{args:?}: {error}");
    }
    assert_eq!(shell.ok(&["oauth-app", "delete", "oidc"]).await, "deleted the OAuth app of oidc\n", "nobody uses it");
    assert_eq!(shell.on_terminal(80, &[], "n\n", &["agent", "delete", "Clerk"]).await.0, 1);
    let (code, shown) = shell.on_terminal(80, &[], "y\n", &["agent", "delete", "Clerk"]).await;
    assert!(code == 0 && shown.contains("To delete the agent Clerk would stop:") && shown.contains("[y/N]"), "{shown}");
    assert_eq!(shell.ok(&["import", "remove", "orders", "--yes"]).await, "removed openapi/orders\n");
    let listed = shell.ok(&["environment"]).await;
    assert!(listed.lines().any(|line| line.starts_with("staging\t") && line.contains("\tmaker (version 1)\t")), "{listed}");
    assert_eq!(shell.ok(&["environment", "archive", "staging", "--yes"]).await, "archived staging\n");
    assert_eq!(shell.ok(&["environment", "archive", "staging", "--undo"]).await, "unarchived staging\n");
    assert_eq!(shell.ok(&["workflow", "archive", "maker", "--yes"]).await, "archived maker\n");
    assert_eq!(shell.ok(&["connections", "delete", "fake-main", "--yes"]).await, "deleted fake-main\n");
    assert_eq!(shell.ok(&["connections"]).await, "");
}

#[tokio::test]
async fn help_shows_a_commands_own_options() {
    let dir = TempDir::new().unwrap();
    let help = |args: &'static [&'static str]| {
        let mut command = program(dir.path());
        command.args(args);
        async { run(command).await.1 }
    };
    for own in [&["connect", "--help"][..], &["trigger", "create", "--help"], &["call", "-h"], &["--help"], &["key", "list", "--help"]] {
        assert!(!help(own).await.contains("--trigger-concurrency"), "{own:?}");
    }
    let connect = help(&["connect", "--help"]).await;
    assert!(connect.contains("--field") && connect.contains("--json") && connect.contains("--url"), "{connect}");
    assert!(help(&["--help"]).await.contains("`toolyard serve --help`"));
    assert!(help(&["key", "list", "--help"]).await.contains("--data-dir"));
    for serve in [&["serve", "--help"][..], &["serve", "-h"]] {
        let serve = help(serve).await;
        assert!(
            serve.contains("Server settings:") && serve.contains("--trigger-concurrency") && serve.contains("TOOLYARD_LISTEN"),
            "{serve}"
        );
    }
    let config = help(&["config", "--trigger-concurrency", "7"]).await;
    assert!(config.contains("\"7\""), "a setting that is not shown is still taken: {config}");
}

#[tokio::test]
async fn a_server_is_named_without_its_scheme() {
    let shell = Shell::start().await;
    let port = shell.server.url.rsplit(':').next().unwrap();
    let mut command = shell.command(&["connections"]);
    command.env("TOOLYARD_URL", format!("localhost:{port}"));
    let (code, _, err) = run(command).await;
    assert_eq!(code, 0, "{err}");
}

#[tokio::test]
async fn an_empty_list_says_the_next_command() {
    let shell = Shell::start().await;
    for (args, next) in [
        (&["connections"][..], "`toolyard connect INTEGRATION`"),
        (&["import", "list"], "`toolyard import openapi URL`"),
        (&["agent"], "`toolyard agent create NAME --app APP`"),
        (&["workflow"], "`toolyard workflow create SLUG"),
        (&["workflow", "runs"], "`toolyard workflow run SLUG`"),
        (&["trigger"], "`toolyard trigger create EVENT"),
        (&["trigger", "deliveries"], "`toolyard trigger create`"),
        (&["approval"], "`toolyard permissions ask REF`"),
        (&["oauth-app", "list"], "`toolyard oauth-app set INTEGRATION"),
    ] {
        let (code, out, err) = shell.run(args).await;
        assert!(code == 0 && out.is_empty() && err.contains(next), "{args:?}: {out}{err}");
    }
    assert_eq!(shell.run(&["connections", "--json"]).await.2, "");
}

#[tokio::test]
async fn a_terminal_gets_a_table_that_fits() {
    let shell = Shell::start().await;
    shell.connect_fake().await;
    let id = shell.json(&["connections", "--json"]).await["connections"][0]["id"].as_str().unwrap().to_owned();
    let (_, shown) = shell.on_terminal(60, &[], "", &["connections"]).await;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "\u{1b}[1mINTEGRATION  SLUG       ACCOUNT  ID        STATE  WHY\u{1b}[0m", "{shown}");
    assert_eq!(lines[1], format!("fake         fake-main  ann      {}  \u{1b}[32mready\u{1b}[0m", &id[28..]), "{shown}");
    let (_, plain) = shell.on_terminal(40, &[("NO_COLOR", "1")], "", &["integrations", "show", "fake"]).await;
    assert!(!plain.contains('\u{1b}') && plain.contains("ACTION") && plain.contains('…'), "{plain}");
    let table = plain.split_once("ACTION").unwrap().1;
    assert!(table.lines().all(|line| line.chars().count() <= 40), "{plain}");
    let (_, keys) = shell.on_terminal(200, &[("NO_COLOR", "1")], "", &["key", "list"]).await;
    let created = shell.json(&["key", "list", "--json"]).await[0]["created_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let local = created.in_tz("Europe/Berlin").unwrap().strftime("%Y-%m-%d %H:%M:%S").to_string();
    assert!(keys.contains("LAST USED") && keys.contains(&local), "{keys}");
    let (code, waited) = shell.on_terminal(80, &[], "", &["call", "fake", "SLOWLY", "--arg", "ms=1500"]).await;
    assert!(code == 0 && waited.contains("calling tools.native.fake.SLOWLY.fake-main (1 s)"), "{waited}");
    assert!(!shell.run(&["call", "fake", "SLOWLY", "--arg", "ms=1500"]).await.2.contains("calling"));
}

#[tokio::test]
async fn secrets_go_in_and_are_listed_by_name() {
    let shell = Shell::start().await;
    assert!(shell.run(&["secret"]).await.2.contains("toolyard secret set NAME"));
    let mut command = shell.command(&["secret", "set", "crm_key", "--host", "crm.example.com", "--description", "for the CRM"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut child.stdin.take().unwrap(), b"s3cr3t-value\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "kept crm_key\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(shell.ok(&["secret", "set", "crm_key", "--value", "s3cr3t-other"]).await, "replaced crm_key\n");
    let listed = shell.ok(&["secret", "list"]).await;
    assert!(listed.starts_with("crm_key\tcrm.example.com\tfor the CRM\t"), "{listed}");
    assert!(!shell.ok(&["secret", "--json"]).await.contains("s3cr3t"));
    let key = shell.ok(&["key", "create", "--role", "viewer", "--reads-secrets"]).await;
    let shown = shell.server.send_as(Some(&format!("ApiKey {}", key.trim())), http::Method::GET, "/secrets/crm_key", None).await.1;
    assert_eq!(shown["data"]["secret"]["content"], "s3cr3t-other", "the value is what came in, without the end of the line");
    assert!(shell.fails(&["secret", "set", "a.b", "--value", "x"]).await.contains("must not contain dots"));
    assert!(shell.fails(&["secret", "remove", "crm_key"]).await.contains("Say --yes"));
    shell.ok(&["secret", "remove", "crm_key", "--yes"]).await;
    assert!(shell.fails(&["secret", "remove", "crm_key", "--yes"]).await.contains("Secret not found"));
}

#[tokio::test]
async fn a_project_says_how_it_looks_and_what_it_keeps() {
    let shell = Shell::start().await;
    let header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
    let logo = shell.dir.path().join("logo.png");
    std::fs::write(&logo, header).unwrap();
    let shown = shell.ok(&["branding", "--name", "Acme", "--accent", "#2457D6", "--logo", logo.to_str().unwrap()]).await;
    assert!(["Acme", "#2457d6", "a PNG"].iter().all(|part| shown.contains(part)), "{shown}");
    let kept = shell.json(&["branding", "--name", "", "--json"]).await;
    assert_eq!((kept.get("name"), &kept["accent"], kept["logo"].is_string()), (None, &json!("#2457d6"), true), "the rest stays: {kept}");
    assert!(shell.fails(&["branding", "--accent", "blue"]).await.contains("`blue` is no colour"));
    assert_eq!(shell.json(&["branding", "--clear", "--json"]).await, json!({}));

    let allowed =
        shell.ok(&["connect-links", "--allow-return", "https://app.example/done", "--allow-origin", "https://app.example/"]).await;
    assert_eq!(allowed, "return\thttps://app.example/done\nsite\thttps://app.example\n");
    let more =
        shell.json(&["connect-links", "--allow-return", "https://app.example/in/*", "--disallow", "https://app.example", "--json"]).await;
    assert_eq!(more, json!({"return_to": ["https://app.example/done", "https://app.example/in/*"], "origins": []}));
    assert!(shell.fails(&["connect-links", "--disallow", "https://other.example"]).await.contains("is not allowed now"));
    assert!(shell.fails(&["connect-links", "--allow-origin", "example"]).await.contains("is no address"));

    assert_eq!(shell.ok(&["retention"]).await, "runs\t90\t90\ncalls\t365\t365\napprovals\t90\t90\n");
    assert_eq!(shell.ok(&["retention", "--runs", "30", "--calls", "60"]).await, "runs\t30\t90\ncalls\t60\t365\napprovals\t90\t90\n");
    assert!(shell.ok(&["retention", "--runs", "0"]).await.starts_with("runs\t90\t90\ncalls\t60\t365\n"), "0 leaves it to the deployment");
    assert!(shell.fails(&["retention", "--runs", "91"]).await.contains("between 2 and 90"));

    assert_eq!(shell.ok(&["user-limits"]).await, "at once\tany\nin a minute\tany\nin a day\tany\n");
    assert_eq!(shell.ok(&["user-limits", "--at-once", "4", "--per-day", "100"]).await, "at once\t4\nin a minute\tany\nin a day\t100\n");
    assert!(shell.ok(&["user-limits", "--at-once", "0"]).await.starts_with("at once\tany\n"), "0 takes it away");
    assert!(shell.fails(&["user-limits", "--per-day", "1000001"]).await.contains("between 1 and 1000000"));
    shell.ok(&["user-limits", "--per-day", "0"]).await;
    assert_eq!(shell.json(&["users", "open", "ann", "--triggers", "webhook", "--json"]).await["session"]["may_trigger"], true);
    assert!(shell.fails(&["users", "open", "ann", "--triggers", "no-such-workflow"]).await.contains("no-such-workflow"));
    assert!(shell.ok(&["oauth-app", "redirect", "github"]).await.contains("/tools/connections/callback/"));
}
