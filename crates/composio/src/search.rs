//! Composio's own search for tools, asked once for several use cases.

use std::collections::BTreeSet;
use std::time::Duration;

use catalog::{Reach, Source};
use discovery::{FindError, Finder, Suggestion};
use futures_util::future::BoxFuture;
use kernel::ProjectId;
use serde_json::json;

use crate::client::ApiRequest;
use crate::translate::translate;
use crate::{Composio, KEY};

/// The most use cases that Composio takes at once.
const AT_ONCE: usize = 7;
const LANE: &str = "search";
/// The longest use case that Composio takes.
const MAX_USE_CASE: usize = 1024;

impl Finder for Composio {
    fn provider(&self) -> &'static str {
        KEY
    }

    fn find<'a>(
        &'a self,
        project: ProjectId,
        use_cases: &'a [&'a str],
        within: Duration,
    ) -> BoxFuture<'a, Result<Vec<Suggestion>, FindError>> {
        Box::pin(async move {
            let late = || FindError(format!("no answer within {} s", within.as_secs_f32()));
            tokio::time::timeout(within, self.suggest(project, use_cases, within)).await.unwrap_or_else(|_| Err(late()))
        })
    }
}

impl Composio {
    async fn suggest(&self, project: ProjectId, use_cases: &[&str], within: Duration) -> Result<Vec<Suggestion>, FindError> {
        let asked = use_cases.chunks(AT_ONCE).map(|part| self.ask_search(project, part, within));
        let mut found = Vec::with_capacity(use_cases.len());
        for part in futures_util::future::join_all(asked).await {
            found.extend(part?);
        }
        let named: BTreeSet<(String, String)> = found
            .iter()
            .flat_map(|suggestion| suggestion.primary.iter().chain(&suggestion.related))
            .map(|tool| (tool.integration.clone(), tool.action.clone()))
            .collect();
        let reached = named.iter().map(|(integration, action)| self.reach(Reach::Action(integration, action)));
        for failed in futures_util::future::join_all(reached).await.into_iter().filter_map(Result::err) {
            tracing::debug!(%failed, "a tool that Composio suggests could not be read");
        }
        Ok(found)
    }

    async fn ask_search(&self, project: ProjectId, use_cases: &[&str], within: Duration) -> Result<Vec<Suggestion>, FindError> {
        let short: Vec<&str> = use_cases.iter().map(|case| cut(case)).collect();
        let queries: Vec<_> = short.iter().map(|case| json!({"use_case": case})).collect();
        let body = json!({"user_id": project, "arguments": {"queries": queries, "session": {"generate_id": true}}});
        let ask = ApiRequest::post(&["tools", "execute", "COMPOSIO_SEARCH_TOOLS"], body).within(within).circuit(LANE).of(project);
        let short: Vec<String> = short.into_iter().map(str::to_owned).collect();
        let translated = self.client.ask_for(ask, move |reply| {
            let short: Vec<&str> = short.iter().map(String::as_str).collect();
            Ok(translate(&reply, &short))
        });
        translated.await.map_err(|fault| FindError(fault.to_string()))?.map_err(|error| FindError(error.to_string()))
    }
}

fn cut(text: &str) -> &str {
    match text.char_indices().nth(MAX_USE_CASE) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
