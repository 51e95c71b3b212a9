//! Search in a session: discovery for its user, of which only what the session has is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use connections::Connection;
use discovery::{Discover, ToolCapability};
use document::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use work::WorkError;

use super::Within;
use super::blocks::Experimental;
use super::config::Config;
use super::custom::{CustomTools, ListedCustomTool};
use crate::choice::status;
use crate::names::{Names, Tool, Toolkit};
use crate::{ApiError, ComposioApi, Refusal, ids, schema};

const MAX_QUERIES: usize = 20;
const MAX_USE_CASE: usize = 1024;
/// How many finds are looked at, and how many are related at most.
const LOOK_AT: usize = 30;
const MAX_RELATED: usize = 5;
/// About how many bytes of work an action is for whoever ranks it.
const ACTION_WEIGHT: usize = 256;

/// What shall be done.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::SearchSession)]
pub struct SearchSession {
    #[schema(min_items = 1, max_items = 20)]
    pub queries: Vec<SearchQuery>,
    /// Only in these.
    #[serde(default)]
    pub toolkits: Option<Vec<String>>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub search_strategy: Option<String>,
    #[serde(default)]
    pub experimental: Option<Experimental>,
}

/// One thing to do.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::SearchQuery)]
pub struct SearchQuery {
    #[schema(min_length = 1, max_length = 1024)]
    pub use_case: String,
    /// What is known already; search does not need it.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub known_fields: Option<Value>,
}

/// What fits each query.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SearchAnswer)]
pub struct SearchAnswer {
    pub success: bool,
    #[schema(required)]
    pub error: Option<String>,
    pub results: Vec<SearchResult>,
    pub tool_schemas: BTreeMap<String, FoundSchema>,
    pub toolkit_connection_statuses: Vec<ToolkitStatus>,
    pub next_steps_guidance: Vec<String>,
    pub session: SearchedSession,
    pub time_info: TimeInfo,
}

/// What fits one query.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SearchResult)]
pub struct SearchResult {
    pub index: usize,
    pub use_case: String,
    pub primary_tool_slugs: Vec<String>,
    pub related_tool_slugs: Vec<String>,
    pub toolkits: Vec<String>,
    pub recommended_plan_steps: Vec<String>,
    pub known_pitfalls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_guidance: Option<String>,
}

/// The arguments of a tool.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::FoundSchema)]
pub struct FoundSchema {
    pub toolkit: String,
    pub tool_slug: String,
    pub description: String,
    #[schema(value_type = Object)]
    pub input_schema: Map<String, Value>,
    #[serde(rename = "hasFullSchema")]
    pub has_full_schema: bool,
}

/// Whether the user has an account.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolkitStatus)]
pub struct ToolkitStatus {
    pub toolkit: String,
    pub description: String,
    pub has_active_connection: bool,
    pub status_message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<SessionAccount>,
    /// `required` where a call has to name one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_selection: Option<&'static str>,
}

/// One account of the user.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionAccount)]
pub struct SessionAccount {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    pub status: &'static str,
    pub is_default: bool,
    pub created_at: String,
}

/// The session, for models that pass it on.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SearchedSession)]
pub struct SearchedSession {
    pub id: String,
    pub generate_id: bool,
    pub instructions: String,
}

/// What time it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::TimeInfo)]
pub struct TimeInfo {
    pub current_time_utc: String,
    pub current_time_utc_epoch_seconds: i64,
    pub message: String,
}

/// What was found for one query, within the session.
struct Fitting {
    primary: Vec<Tool>,
    related: Vec<Tool>,
}

impl FoundSchema {
    pub(super) fn of(tool: &Tool) -> Self {
        let action = tool.action();
        Self {
            toolkit: tool.toolkit.slug.clone(),
            tool_slug: tool.slug().to_owned(),
            description: action.description.clone(),
            input_schema: schema::of_input(action.input_schema.value()),
            has_full_schema: true,
        }
    }

    fn of_custom(toolkit: &str, tool: &ListedCustomTool) -> Self {
        Self {
            toolkit: toolkit.to_owned(),
            tool_slug: tool.slug.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            has_full_schema: true,
        }
    }
}

impl ComposioApi {
    /// The tools of a session that fit what shall be done.
    #[kernel::boxed]
    pub async fn search_in_session(&self, session: &Within, search: SearchSession) -> Result<SearchAnswer, ApiError> {
        if !session.config.searches() {
            return Err(Refusal::forbidden("ToolRouterV2_SearchDisabled", "Search is switched off in this session.").into());
        }
        if !(1..=MAX_QUERIES).contains(&search.queries.len()) {
            return Err(Refusal::bad_request(format!("`queries` must be 1 to {MAX_QUERIES} things to do.")).into());
        }
        let is_sentence = |text: &str| !text.trim().is_empty() && text.chars().nth(MAX_USE_CASE).is_none();
        if !search.queries.iter().all(|query| is_sentence(&query.use_case)) {
            return Err(Refusal::bad_request(format!("`use_case` must be a sentence of 1 to {MAX_USE_CASE} characters.")).into());
        }
        let names = self.names(session.scope).await?;
        let custom = CustomTools::read(search.experimental.as_ref(), &names)?;
        let within = narrowed(session, &names, search.toolkits.as_deref())?;
        let use_cases: Vec<String> = search.queries.into_iter().map(|query| query.use_case).collect();
        let discover = Discover { use_cases: use_cases.clone(), provider: None, alternatives: LOOK_AT, debug: false };
        let found = self.parts().discovery.discover(session.scope, &discover).await?;
        // A search may have had a provider list more than before.
        let names = self.names(session.scope).await?;
        let (mut results, mut schemas, mut kits) = (Vec::new(), BTreeMap::new(), Vec::<Arc<Toolkit>>::new());
        for (index, (use_case, capability)) in use_cases.into_iter().zip(found.capabilities).enumerate() {
            let mut fitting = fitting(&names, &within, &capability);
            if fitting.primary.is_empty() && within.is_closed() {
                fitting = self.ranked(session, &names, &within, &use_case).await?;
            }
            let own = custom.fitting(&use_case);
            for tool in fitting.primary.iter().chain(&fitting.related) {
                schemas.entry(tool.slug().to_owned()).or_insert_with(|| FoundSchema::of(tool));
                if !kits.iter().any(|kit| kit.slug == tool.toolkit.slug) {
                    kits.push(tool.toolkit.clone());
                }
            }
            for (kit, tool) in &own {
                schemas.entry(tool.slug.clone()).or_insert_with(|| FoundSchema::of_custom(kit, tool));
            }
            results.push(result(index, use_case, &fitting, &own, capability));
        }
        let mut statuses = Vec::with_capacity(kits.len());
        for kit in &kits {
            statuses.push(self.toolkit_status(session, kit).await?);
        }
        Ok(SearchAnswer {
            success: true,
            error: None,
            next_steps_guidance: next_steps(&session.config, &results, &statuses),
            results,
            tool_schemas: schemas,
            toolkit_connection_statuses: statuses,
            session: SearchedSession {
                id: session.id.clone(),
                generate_id: false,
                instructions: "Pass this id on to the other tools of the session; it stays the same.".to_owned(),
            },
            time_info: self.time_info(),
        })
    }

    /// What fits best among all tools of a session that has few: discovery looks at the whole catalog, where others come first.
    async fn ranked(&self, session: &Within, names: &Arc<Names>, within: &Config, use_case: &str) -> Result<Fitting, ApiError> {
        let (names, within, sentence) = (names.clone(), within.clone(), use_case.to_owned());
        let kits: Vec<Arc<Toolkit>> = names.toolkits().iter().filter(|kit| within.has_toolkit(&kit.slug)).cloned().collect();
        let size = kits.iter().map(|kit| kit.integration.actions.len() * ACTION_WEIGHT).sum();
        let rank = move |_: &kernel::Budget| {
            let integrations: Vec<&catalog::Integration> = kits.iter().map(|kit| &*kit.integration).collect();
            let scores = catalog::relevance(&sentence, &integrations, &[]);
            let mut ranked: Vec<(f32, Tool)> = Vec::new();
            for (kit, scores) in kits.iter().zip(scores) {
                let scored = kit.tools().zip(scores).filter(|(tool, score)| *score > 0.0 && within.has_tool(tool));
                ranked.extend(scored.map(|(tool, score)| (score, tool)));
            }
            ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            let mut tools = ranked.into_iter().map(|(_, tool)| tool);
            let primary = tools.by_ref().take(1).collect();
            Ok::<_, WorkError>(Fitting { primary, related: tools.take(MAX_RELATED).collect() })
        };
        Ok(self.parts().workers.run(session.scope.project, size, rank).await?)
    }

    /// Whether the session's user has an account of a toolkit.
    pub(super) async fn toolkit_status(&self, session: &Within, kit: &Arc<Toolkit>) -> Result<ToolkitStatus, ApiError> {
        let integration = &kit.integration;
        let rows = if integration.is_no_auth() { Vec::new() } else { self.accounts_in(session, kit).await? };
        let is_ready = integration.is_no_auth() || rows.iter().any(Connection::is_usable);
        let several = session.config.has_several() && !rows.is_empty();
        let must_choose = session.config.must_choose() && rows.iter().filter(|row| row.is_usable()).count() > 1;
        let status_message = match () {
            () if integration.is_no_auth() => format!("`{}` needs no account.", kit.slug),
            () if must_choose => format!("The user has several accounts of `{}`; name one as `account` in each call.", kit.slug),
            () if is_ready => format!("The user has an account of `{}`.", kit.slug),
            () if session.config.connects() => {
                format!(
                    "The user has no account of `{}` that works. Connect one with COMPOSIO_MANAGE_CONNECTIONS before calling its tools.",
                    kit.slug
                )
            }
            () => format!("The user has no account of `{}` that works, and this session connects none.", kit.slug),
        };
        Ok(ToolkitStatus {
            toolkit: kit.slug.clone(),
            description: integration.description.clone(),
            has_active_connection: is_ready,
            status_message,
            accounts: if several { self.shown_accounts(&rows) } else { Vec::new() },
            account_selection: must_choose.then_some("required"),
        })
    }

    pub(super) fn shown_accounts(&self, rows: &[Connection]) -> Vec<SessionAccount> {
        let now = self.parts().clock.now();
        let default = rows.iter().position(Connection::is_usable);
        let shown = |(place, row): (usize, &Connection)| SessionAccount {
            id: ids::ACCOUNT.show(row.id),
            alias: row.alias.clone(),
            status: status(row.state(now).0),
            is_default: Some(place) == default,
            created_at: row.created_at.to_string(),
        };
        rows.iter().enumerate().map(shown).collect()
    }

    fn time_info(&self) -> TimeInfo {
        let now = self.parts().clock.now();
        let seconds = now.micros().div_euclid(1_000_000);
        TimeInfo { current_time_utc: now.to_string(), current_time_utc_epoch_seconds: seconds, message: format!("It is {now} (UTC).") }
    }
}

/// The session's config, narrowed to the toolkits that a search names.
fn narrowed(session: &Within, names: &Names, wanted: Option<&[String]>) -> Result<Config, Refusal> {
    let mut config = session.config.clone();
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Ok(config) };
    let mut slugs = Vec::with_capacity(wanted.len());
    for slug in wanted {
        let toolkit = names.toolkit(slug).map_err(|refusal| Refusal::bad_request(refusal.message))?;
        if session.config.has_toolkit(&toolkit.slug) {
            slugs.push(toolkit.slug.clone());
        }
    }
    let toolkits = config.toolkits.get_or_insert_default();
    (toolkits.enable, toolkits.disable) = (Some(slugs), None);
    Ok(config)
}

/// What discovery found, as far as the session has it. What it is sure of comes first.
fn fitting(names: &Names, within: &Config, capability: &ToolCapability) -> Fitting {
    let tool = |provider: &str, integration: &str, action: &str| {
        let tool = names.toolkit_of(provider, integration)?.tool(action)?;
        within.has_tool(&tool).then_some(tool)
    };
    let sure = capability.tool.iter().chain(capability.then.iter().flatten());
    let mut primary: Vec<Tool> = sure.filter_map(|found| tool(found.provider, &found.integration, &found.action)).collect();
    let others = capability.alternatives.iter();
    let mut related: Vec<Tool> = others.filter_map(|found| tool(found.provider, &found.integration, &found.action)).collect();
    related.retain(|other| !primary.iter().any(|tool| tool.slug() == other.slug()));
    if primary.is_empty() && !related.is_empty() {
        primary.push(related.remove(0));
    }
    related.truncate(MAX_RELATED);
    Fitting { primary, related }
}

fn result(
    index: usize,
    use_case: String,
    fitting: &Fitting,
    own: &[(&str, &ListedCustomTool)],
    capability: ToolCapability,
) -> SearchResult {
    let slugs = |tools: &[Tool]| tools.iter().map(|tool| tool.slug().to_owned()).collect::<Vec<_>>();
    let mut primary = slugs(&fitting.primary);
    primary.extend(own.iter().map(|(_, tool)| tool.slug.clone()));
    let mut toolkits: Vec<String> = Vec::new();
    let kits = fitting.primary.iter().chain(&fitting.related).map(|tool| tool.toolkit.slug.as_str());
    for kit in kits.chain(own.iter().map(|(kit, _)| *kit)) {
        if !toolkits.iter().any(|known| known == kit) {
            toolkits.push(kit.to_owned());
        }
    }
    let steps = fitting.primary.iter().map(|tool| format!("Call {}: {}", tool.slug(), tool.action().name));
    let pitfalls = fitting.primary.iter().flat_map(|tool| tool.action().pitfalls.iter().map(|text| format!("[{}] {text}", tool.slug())));
    let nothing = || "No tool of this session fits; say it in other words, or with the name of the app.".to_owned();
    SearchResult {
        index,
        use_case,
        related_tool_slugs: slugs(&fitting.related),
        toolkits,
        recommended_plan_steps: steps.collect(),
        known_pitfalls: pitfalls.collect(),
        difficulty: capability.difficulty,
        execution_guidance: if primary.is_empty() { Some(nothing()) } else { None },
        primary_tool_slugs: primary,
    }
}

fn next_steps(config: &Config, results: &[SearchResult], statuses: &[ToolkitStatus]) -> Vec<String> {
    let mut steps = Vec::new();
    let missing: Vec<&str> = statuses.iter().filter(|kit| !kit.has_active_connection).map(|kit| kit.toolkit.as_str()).collect();
    if !missing.is_empty() && config.connects() {
        steps.push(format!("Connect {} with COMPOSIO_MANAGE_CONNECTIONS, and show the user the links.", missing.join(", ")));
    }
    if results.iter().any(|result| !result.primary_tool_slugs.is_empty()) && config.calls_several() {
        steps.push("Call what fits with COMPOSIO_MULTI_EXECUTE_TOOL, with arguments from `tool_schemas`.".to_owned());
    }
    if results.iter().all(|result| result.primary_tool_slugs.is_empty()) {
        steps.push("Nothing fits; search again in other words.".to_owned());
    }
    steps
}
