//! The tools that a session lists: those it is steered with, then those that were chosen to be there from the start.

use super::Within;
use super::blocks::PreloadedTools;
use super::meta::{MetaTool, TOOLKIT};
use crate::names::{Tool, Toolkit};
use crate::page::{Page, Window};
use crate::tools::{DeprecatedTool, ToolDetails, ToolLogo, ToolToolkit, described};
use crate::{ApiError, ComposioApi, Refusal};

/// The most tools that are listed where all are wanted.
const MOST: usize = 1000;
/// Meta tools have no versions.
const VERSION: &str = "00000000_00";

impl MetaTool {
    /// The meta tool as tools are described.
    pub(super) fn details(self) -> ToolDetails {
        let (name, description) = (self.name().to_owned(), self.description().to_owned());
        ToolDetails {
            slug: self.slug().to_owned(),
            name: name.clone(),
            human_description: description.clone(),
            description,
            toolkit: ToolToolkit { slug: TOOLKIT.to_owned(), name: "Composio".to_owned(), logo: String::new() },
            input_parameters: self.input(),
            output_parameters: serde_json::Map::new(),
            no_auth: true,
            scopes: Vec::new(),
            tags: if self.reads_only() { vec!["readOnlyHint"] } else { Vec::new() },
            version: VERSION.to_owned(),
            available_versions: vec![VERSION.to_owned()],
            is_deprecated: false,
            deprecated: DeprecatedTool {
                display_name: name,
                version: VERSION.to_owned(),
                available_versions: vec![VERSION.to_owned()],
                is_deprecated: false,
                toolkit: ToolLogo { logo: String::new() },
            },
        }
    }
}

impl ComposioApi {
    /// The tools of a session that are listed beside the meta tools.
    pub(super) async fn preloaded(&self, session: &Within) -> Result<Vec<Tool>, ApiError> {
        let config = &session.config;
        match &config.preload {
            PreloadedTools::Slugs(slugs) => {
                let mut tools = Vec::with_capacity(slugs.len());
                for slug in slugs {
                    match self.tool_in_session(session, slug).await {
                        Ok(tool) => tools.push(tool),
                        // What is not there any more, or was put outside since, is not listed.
                        Err(ApiError::Refused(refusal)) if matches!(refusal.status, 403 | 404) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(tools)
            }
            PreloadedTools::All(_) => {
                for slug in config.toolkits.iter().flat_map(|toolkits| toolkits.enable.iter().flatten()) {
                    // Has its provider list what it lists on demand.
                    match self.toolkit(session.scope, slug).await {
                        Ok(_) => {}
                        Err(ApiError::Refused(refusal)) if refusal.status == 404 => {}
                        Err(error) => return Err(error),
                    }
                }
                let names = self.names(session.scope).await?;
                let all = names.toolkits().iter().flat_map(Toolkit::tools);
                Ok(all.filter(|tool| config.has_tool(tool)).take(MOST).collect())
            }
        }
    }

    /// The slugs of what is listed.
    pub(super) async fn listed_slugs(&self, session: &Within) -> Result<Vec<String>, ApiError> {
        let meta = session.config.meta_tools().into_iter().map(|tool| tool.slug().to_owned());
        let preloaded = self.preloaded(session).await?;
        Ok(meta.chain(preloaded.iter().map(|tool| tool.slug().to_owned())).collect())
    }

    /// A page of what is listed.
    #[kernel::boxed]
    pub async fn session_tools(&self, session: &Within, window: Window) -> Result<Page<ToolDetails>, ApiError> {
        let meta: Vec<Listed> = session.config.meta_tools().into_iter().map(Listed::Meta).collect();
        let preloaded = self.preloaded(session).await?;
        let page = window.cut(meta.into_iter().chain(preloaded.into_iter().map(Listed::Tool)));
        let mut details = Vec::with_capacity(page.items.len());
        let mut tools = Vec::new();
        for listed in &page.items {
            match listed {
                Listed::Meta(meta) => details.push(meta.details()),
                Listed::Tool(tool) => tools.push(tool.clone()),
            }
        }
        details.extend(described(&tools));
        let Page { next_cursor, total_pages, current_page, total_items, .. } = page;
        Ok(Page { items: details, next_cursor, total_pages, current_page, total_items })
    }

    /// A meta tool in full; nothing where the slug is none of theirs.
    pub fn meta_tool(slug: &str) -> Option<Result<ToolDetails, Refusal>> {
        let known = || MetaTool::find(slug).map(MetaTool::details).ok_or_else(|| Refusal::tool_not_found(MetaTool::why_not(slug)));
        MetaTool::is_one(slug).then(known)
    }
}

enum Listed {
    Meta(MetaTool),
    Tool(Tool),
}
