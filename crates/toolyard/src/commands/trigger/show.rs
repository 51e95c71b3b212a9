//! `toolyard trigger events` and `show`.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::super::client::{Client, Remote};
use super::super::integrations::{encode, list, text};
use super::super::names;
use super::super::print::{self, Column, Table};
use super::deliveries::delivery_id;
use super::{Kind, named, state, target, what};
use crate::config::Config;

const ATTEMPTS: Table =
    Table::new(&[Column::number("TRY"), Column::time("STARTED"), Column::state("CODE"), Column::id("RUN"), Column::text("MESSAGE")]);

#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// Key of the integration [default: list the integrations that have events]
    integration: Option<String>,
    /// Key of the event to show
    event: Option<String>,
    /// Words to look for
    #[arg(long)]
    search: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Id or name of a subscription or schedule, or id of a delivery or stored event
    #[arg(value_name = "WHAT")]
    who: String,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn events(config: &Config, args: &EventsArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let search = |name: &str| args.search.as_ref().map(|words| format!("&{name}={}", encode(words))).unwrap_or_default();
    let Some(integration) = &args.integration else {
        let root = "/triggers/catalog/providers/native/integrations";
        let reply = client.get(&format!("{root}?limit=1000&sort_by=alphabetically{}", search("search"))).await?;
        let found: Vec<&Value> = list(&reply, "integrations").iter().filter(|row| row["events_count"] != 0).collect();
        if args.json {
            print::json(&json!({"count": found.len(), "integrations": found}));
            return Ok(());
        }
        let rows: Vec<_> = found.iter().map(|row| vec![text(row, "key"), text(row, "name"), row["events_count"].to_string()]).collect();
        Table::new(&[Column::text("KEY"), Column::text("NAME"), Column::number("EVENTS")])
            .when_empty("no integration with events fits")
            .show(&rows);
        return Ok(());
    };
    let path = format!("{}/events", names::integration(&client, integration).await?.path("triggers"));
    if let Some(event) = &args.event {
        let reply = client.get(&format!("{path}/{}", encode(event))).await?;
        show_event(&reply, args.json);
        return Ok(());
    }
    let reply = client.get(&format!("{path}?limit=1000{}", search("query"))).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let rows: Vec<_> = list(&reply, "events").iter().map(|event| vec![text(event, "key"), text(event, "description")]).collect();
    Table::new(&[Column::text("EVENT"), Column::text("WHEN")]).when_empty("no event fits").show(&rows);
    Ok(())
}

fn show_event(reply: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let event = &reply["event"];
    print::out(&format!("{}\n{}\n\n", text(event, "name"), text(event, "description")));
    let config = &event["trigger_config"];
    let required = list(config, "required");
    let fields = config["properties"].as_object().cloned().unwrap_or_default();
    let rows: Vec<_> = fields
        .iter()
        .map(|(name, schema)| {
            let mark = if required.iter().any(|wanted| wanted == name.as_str()) { "yes" } else { "" };
            vec![name.clone(), text(schema, "type"), mark.to_owned(), text(schema, "description")]
        })
        .collect();
    if rows.is_empty() {
        print::out("there is nothing to --set\n");
    } else {
        print::table(&["FIELD", "TYPE", "REQUIRED", "WHAT IT IS"], &rows);
    }
    let payload: Vec<String> = event["payload"]["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    if !payload.is_empty() {
        print::out(&format!("\nevent.attributes has: {}\n", payload.join(", ")));
    }
}

pub(super) async fn show(config: &Config, args: &ShowArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    // The end of an id is a delivery's, unless a trigger is called so.
    if !names::is_whole(&args.who)
        && let Ok(id) = delivery_id(&client, &args.who).await
        && named(&client, &args.who).await.is_err()
    {
        show_delivery(&client.get(&format!("/triggers/deliveries/{}", encode(&id))).await?, args.json);
        return Ok(());
    }
    if names::is_whole(&args.who) {
        let id = encode(&args.who);
        if let Some(reply) = client.find(&format!("/triggers/deliveries/{id}")).await? {
            show_delivery(&reply, args.json);
            return Ok(());
        }
        if let Some(reply) = client.find(&format!("/triggers/events/{id}")).await? {
            print::json(if args.json { &reply } else { &reply["event"] });
            return Ok(());
        }
    }
    let (kind, row) = match named(&client, &args.who).await {
        Ok(found) => found,
        Err(error) if names::is_whole(&args.who) => bail!("{error}, and no delivery or event has this id"),
        Err(error) => return Err(error),
    };
    if args.json {
        print::json(&json!({"count": 1, kind.one(): row}));
        return Ok(());
    }
    let pairs = [
        ("name", text(&row, "name")),
        (if kind == Kind::Subscription { "event" } else { "times" }, what(kind, &row)),
        ("runs", target(&row)),
        ("state", state(&row).to_owned()),
        ("why", text(&row, "reason")),
        ("next", print::time(&text(&row, "next_fire_at"))),
        ("address", text(&row, "url")),
        ("integration", text(&row, "integration_key")),
        ("connection", text(&row, "connection_id")),
        ("created", print::time(&text(&row, "created_at"))),
    ];
    print::out(&format!("{} {}\n\n", kind.one(), text(&row, "id")));
    print::fields(&pairs);
    print::out("\n");
    print::json(&row["data"]);
    Ok(())
}

fn show_delivery(reply: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let delivery = &reply["delivery"];
    let status = &delivery["status"];
    print::out(&format!("delivery {}\n\n", text(delivery, "id")));
    let pairs = [
        ("trigger", text(delivery, "trigger_name")),
        ("workflow", text(delivery, "workflow")),
        ("state", text(delivery, "state")),
        ("cancelled by", text(delivery, "cancelled_by_id")),
        ("code", text(status, "code")),
        ("message", text(status, "message")),
        ("next try", print::time(&text(delivery, "next_attempt_at"))),
        ("event", text(delivery, "event_id")),
        ("stored as", text(delivery, "event_row_id")),
        ("subscription", text(delivery, "subscription_id")),
        ("schedule", text(delivery, "schedule_id")),
        ("created", print::time(&text(delivery, "created_at"))),
    ];
    print::fields(&pairs);
    print::out("\n");
    let rows: Vec<_> = list(delivery, "attempts")
        .iter()
        .map(|attempt| {
            vec![
                attempt["number"].to_string(),
                text(attempt, "started_at"),
                text(attempt, "code"),
                text(attempt, "run_id"),
                text(attempt, "message"),
            ]
        })
        .collect();
    ATTEMPTS.show(&rows);
    print::out("\n");
    print::json(&delivery["data"]);
}
