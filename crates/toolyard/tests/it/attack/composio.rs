//! Rows and bodies of Composio's API, as its SDKs send them, for whom the world makes rows.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::operations::Operation;
use super::rows::{World, text};
use crate::composio_api::ask;

/// Parts of Composio's API that are not served.
pub const NOT_SERVED: [&str; 6] = [
    "composio_read_tool_input",
    "composio_proxy",
    "composio_proxy_in_session",
    "composio_request_upload",
    "composio_realtime_credentials",
    "composio_realtime_auth",
];

/// Whether an operation is one of Composio's.
pub fn is_composios(operation: &Operation) -> bool {
    operation.path.starts_with("/v3.1/") || operation.path.starts_with("/tool_router/")
}

impl World {
    async fn composio(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let reply = ask(&self.test, method, path, body).await;
        assert!(reply.status.is_success(), "{path}: {} {}", reply.status, reply.text);
        reply.json()
    }

    /// A session for whom rows are made, with an account that it can use.
    pub async fn router_session(&self) -> String {
        let new = json!({"user_id": self.user(), "toolkits": {"enable": ["fake"]}});
        text(&self.composio(Method::POST, "/tool_router/session", Some(new)).await["session_id"])
    }

    fn new_trigger(&self) -> Value {
        json!({"user_id": self.user(), "trigger_config": {"box": self.name()}})
    }

    fn new_webhook(&self) -> Value {
        json!({"webhook_url": format!("{}/echo/hook", self.fake.url), "enabled_events": ["composio.trigger.message"]})
    }

    /// A project has one.
    async fn webhook(&self) -> Option<String> {
        let found = self.composio(Method::GET, "/webhook_subscriptions", None).await;
        found["items"].get(0).map(|hook| text(&hook["id"]))
    }

    async fn auth_config(&self) -> String {
        let new = json!({"toolkit": {"slug": "fake"}, "auth_config": {"type": "use_composio_managed_auth"}});
        text(&self.composio(Method::POST, "/auth_configs", Some(new)).await["auth_config"]["id"])
    }

    /// An account of whom rows are made for.
    fn new_account(&self, auth_config: &str) -> Value {
        let val = json!({"base": self.fake.url, "api_key": format!("sk-{}-123456", self.user())});
        let state = json!({"authScheme": "API_KEY", "val": val});
        json!({"auth_config": {"id": auth_config}, "connection": {"user_id": self.user(), "state": state}})
    }

    /// A new row of the kind that a parameter names, as Composio writes ids.
    pub async fn composio_row(&self, name: &str, operation: &Operation) -> Option<String> {
        let id = match name {
            "router_session_id" => self.router_session().await,
            "trigger_id" => {
                let made = self.composio(Method::POST, "/trigger_instances/FAKE_THING_CHANGED/upsert", Some(self.new_trigger())).await;
                text(&made["trigger_id"])
            }
            "webhook_id" => match self.webhook().await {
                Some(id) => id,
                None => text(&self.composio(Method::POST, "/webhook_subscriptions", Some(self.new_webhook())).await["id"]),
            },
            "auth_config_id" => self.auth_config().await,
            "status" => "ENABLED".to_owned(),
            "account_id" => {
                let new = self.new_account(&self.auth_config().await);
                text(&self.composio(Method::POST, "/connected_accounts", Some(new)).await["id"])
            }
            "slug" if operation.path.contains("/toolkits/") => "fake".to_owned(),
            "slug" if operation.path.contains("/tools/") => "FAKE_GET_A_THING".to_owned(),
            "slug" => "FAKE_THING_CHANGED".to_owned(),
            _ => return None,
        };
        Some(id)
    }

    /// A body that is taken.
    pub async fn composio_body(&self, operation: &Operation, rows: &mut BTreeMap<String, String>) -> Option<Value> {
        let (arguments, queries) = (json!({"owner": "o", "path": "p"}), json!([{"use_case": "read a fake thing"}]));
        let body = match operation.id.as_str() {
            "composio_list_several_toolkits" => json!({"toolkits": ["fake"]}),
            "composio_execute_tool" => json!({"user_id": self.user(), "arguments": arguments}),
            "composio_create_auth_config" => json!({"toolkit": {"slug": "fake"}, "auth_config": {"type": "use_composio_managed_auth"}}),
            "composio_change_auth_config" => json!({"type": "default", "name": self.name()}),
            "composio_create_link" => {
                let config = self.named(rows, "auth_config_id", operation).await;
                json!({"auth_config_id": config, "user_id": self.user()})
            }
            "composio_create_account" => {
                let config = self.named(rows, "auth_config_id", operation).await;
                self.new_account(&config)
            }
            "composio_change_account" => json!({"alias": self.name()}),
            "composio_enable_account" => json!({"enabled": true}),
            "composio_refresh_account" => json!({"redirect_url": null}),
            "composio_upsert_trigger" => self.new_trigger(),
            "composio_change_trigger" => json!({"status": "disable"}),
            "composio_create_webhook" => {
                if let Some(id) = self.webhook().await {
                    self.composio(Method::DELETE, &format!("/webhook_subscriptions/{id}"), None).await;
                }
                self.new_webhook()
            }
            "composio_change_webhook" => json!({"enabled_events": ["composio.trigger.message"]}),
            "composio_create_session" => json!({"user_id": self.user(), "toolkits": {"enable": ["fake"]}}),
            "composio_patch_session" => json!({"preload": {"tools": ["FAKE_GET_A_THING"]}}),
            "composio_search_session" => json!({"queries": queries}),
            "composio_execute_in_session" => json!({"tool_slug": "FAKE_GET_A_THING", "arguments": arguments}),
            "composio_execute_meta" => json!({"slug": "COMPOSIO_SEARCH_TOOLS", "arguments": {"queries": queries}}),
            "composio_link_in_session" => json!({"toolkit": "fake"}),
            "composio_attach_to_session" => {
                let tool = json!({"slug": "grep", "name": "Grep", "description": "Finds text", "input_schema": {"type": "object"}});
                json!({"experimental": {"custom_tools": [tool]}})
            }
            "mcp_tool_router" => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
            _ => return None,
        };
        Some(body)
    }
}
