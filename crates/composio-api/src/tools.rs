//! Tools: our actions, listed, found and described as Composio does.

use std::collections::BTreeMap;
use std::sync::Arc;

use document::ToSchema;
use kernel::Scope;
use serde::Serialize;
use serde_json::{Map, Value};
use work::in_place;

use crate::names::{Names, Tool, Toolkit};
use crate::page::{Page, Window};
use crate::{ApiError, ComposioApi, Refusal, schema, versions};

/// The most tools on a page.
pub const MOST: usize = 1000;
/// How many finds of a search are looked at for what fits the rest of the filter.
const LOOKED_AT: usize = 200;
/// What people mean most often.
const IMPORTANT: &str = "important";

/// Which tools to list.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    /// These and nothing else; unknown ones are left out.
    pub tools: Vec<String>,
    pub toolkits: Vec<String>,
    /// A sentence that says what the tool shall do.
    pub search: Option<String>,
    pub important: bool,
    /// With one of these tags.
    pub tags: Vec<String>,
    /// That need one of these scopes.
    pub scopes: Vec<String>,
    /// That these auth configs allow.
    pub auth_configs: Vec<String>,
    pub versions: Versions,
}

/// Versions of toolkits that a caller asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub every: Option<String>,
    pub by_toolkit: BTreeMap<String, String>,
}

impl Versions {
    /// One version for all toolkits, or an object with one for each; SDKs send either.
    pub fn read(text: Option<&str>) -> Result<Self, Refusal> {
        match text.map(str::trim) {
            None | Some("") => Ok(Self::default()),
            Some(text) if text.starts_with('{') => {
                let by_toolkit: BTreeMap<String, String> = serde_json::from_str(text)
                    .map_err(|_| Refusal::bad_request("`toolkit_versions` must be a version, or a version for each toolkit."))?;
                let by_toolkit = by_toolkit.into_iter().map(|(toolkit, version)| (toolkit.to_lowercase(), version)).collect();
                Ok(Self { every: None, by_toolkit })
            }
            Some(version) => Ok(Self { every: Some(version.to_owned()), by_toolkit: BTreeMap::new() }),
        }
    }

    fn of(&self, toolkit: &str) -> Option<&str> {
        self.by_toolkit.get(toolkit).or(self.every.as_ref()).map(String::as_str)
    }

    pub(crate) fn check(&self, toolkit: &Toolkit) -> Result<(), Refusal> {
        versions::check(&toolkit.integration, &toolkit.slug, self.of(&toolkit.slug))
    }
}

/// A tool in full.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::Tool)]
pub struct ToolDetails {
    pub slug: String,
    pub name: String,
    pub description: String,
    pub human_description: String,
    pub toolkit: ToolToolkit,
    #[schema(value_type = Object)]
    pub input_parameters: Map<String, Value>,
    /// Empty where nothing is known of the result.
    #[schema(value_type = Object)]
    pub output_parameters: Map<String, Value>,
    pub no_auth: bool,
    pub scopes: Vec<String>,
    /// `readOnlyHint`, `destructiveHint`, `important`.
    pub tags: Vec<&'static str>,
    pub version: String,
    pub available_versions: Vec<String>,
    pub is_deprecated: bool,
    pub deprecated: DeprecatedTool,
}

/// The toolkit of a tool.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolToolkit)]
pub struct ToolToolkit {
    pub slug: String,
    pub name: String,
    pub logo: String,
}

/// What older clients read.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::DeprecatedTool)]
pub struct DeprecatedTool {
    #[serde(rename = "displayName")]
    pub display_name: String,
    pub version: String,
    pub available_versions: Vec<String>,
    pub is_deprecated: bool,
    pub toolkit: ToolLogo,
}

/// The picture of a tool's toolkit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolLogo)]
pub struct ToolLogo {
    pub logo: String,
}

impl ToolToolkit {
    pub fn of(toolkit: &Toolkit) -> Self {
        let integration = &toolkit.integration;
        Self { slug: toolkit.slug.clone(), name: integration.name.clone(), logo: integration.logo.clone().unwrap_or_default() }
    }
}

/// What kind of tool it is.
pub fn tags(tool: &Tool) -> Vec<&'static str> {
    let action = tool.action();
    let tags = [(action.read_only, "readOnlyHint"), (action.destructive, "destructiveHint"), (action.usage.is_some(), IMPORTANT)];
    tags.into_iter().filter(|(has, _)| *has).map(|(_, tag)| tag).collect()
}

impl ToolDetails {
    /// A tool as Composio describes it.
    pub fn of(tool: &Tool) -> Self {
        let (toolkit, action) = (&tool.toolkit, tool.action());
        let version = toolkit.version();
        let about = ToolToolkit::of(toolkit);
        Self {
            slug: tool.slug().to_owned(),
            name: action.name.clone(),
            description: action.description.clone(),
            human_description: action.description.clone(),
            input_parameters: schema::of_input(action.input_schema.value()),
            output_parameters: schema::of_output(action.output_schema.as_ref().map(kernel::json::Document::value)),
            no_auth: toolkit.integration.is_no_auth(),
            scopes: action.scopes.clone(),
            tags: tags(tool),
            available_versions: vec![version.clone()],
            is_deprecated: false,
            deprecated: DeprecatedTool {
                display_name: action.name.clone(),
                available_versions: vec![version.clone()],
                version: version.clone(),
                is_deprecated: false,
                toolkit: ToolLogo { logo: about.logo.clone() },
            },
            toolkit: about,
            version,
        }
    }

    /// About how many bytes there are to read for one.
    fn weight(tool: &Tool) -> usize {
        let action = tool.action();
        action.input_schema.text().len() + action.output_schema.as_ref().map_or(0, |schema| schema.text().len())
    }
}

/// The descriptions of some tools.
pub fn described(tools: &[Tool]) -> Vec<ToolDetails> {
    in_place(tools.iter().map(ToolDetails::weight).sum(), || tools.iter().map(ToolDetails::of).collect())
}

impl ComposioApi {
    /// The slugs of all tools.
    #[kernel::boxed]
    pub async fn tool_slugs(&self, scope: Scope) -> Result<Vec<String>, ApiError> {
        let names = self.names(scope).await?;
        Ok(names.toolkits().iter().flat_map(Toolkit::tools).map(|tool| tool.slug().to_owned()).collect())
    }

    /// One tool in full.
    #[kernel::boxed]
    pub async fn tool_details(&self, scope: Scope, slug: &str, wanted: &Versions) -> Result<ToolDetails, ApiError> {
        if let Some(meta) = Self::meta_tool(slug) {
            return Ok(meta?);
        }
        let tool = self.tool(scope, slug).await?;
        wanted.check(&tool.toolkit)?;
        Ok(ToolDetails::of(&tool))
    }

    /// A page of the tools that fit.
    #[kernel::boxed]
    pub async fn tools(
        &self,
        scope: Scope,
        filter: &ToolFilter,
        limit: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<ToolDetails>, ApiError> {
        let window = Window::read(limit, cursor, MOST)?;
        if !filter.tools.is_empty() {
            return Ok(window.cut(self.named_tools(scope, filter).await?));
        }
        let page = window.cut(self.fitting_tools(scope, filter).await?);
        let mut checked: Vec<&str> = Vec::new();
        for tool in &page.items {
            if !checked.contains(&tool.toolkit.slug.as_str()) {
                filter.versions.check(&tool.toolkit)?;
                checked.push(&tool.toolkit.slug);
            }
        }
        let items = described(&page.items);
        let Page { next_cursor, total_pages, current_page, total_items, .. } = page;
        Ok(Page { items, next_cursor, total_pages, current_page, total_items })
    }

    /// The tools that are named, in that order; what there is not is left out.
    async fn named_tools(&self, scope: Scope, filter: &ToolFilter) -> Result<Vec<ToolDetails>, ApiError> {
        let mut found: Vec<ToolDetails> = Vec::new();
        for slug in filter.tools.iter().take(MOST) {
            match self.tool_details(scope, slug, &filter.versions).await {
                Ok(tool) if !found.iter().any(|known| known.slug == tool.slug) => found.push(tool),
                Ok(_) => {}
                Err(ApiError::Refused(refusal)) if refusal.status == 404 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The toolkits of auth configs, each with the tools that it allows where it says which.
    async fn allowed_by(&self, scope: Scope, configs: &[String]) -> Result<Vec<(Arc<Toolkit>, Option<Vec<String>>)>, ApiError> {
        let mut allowed = Vec::new();
        for id in configs {
            let config = self.auth_config(scope, id).await?;
            let names = self.names(scope).await?;
            if let Some(toolkit) = names.toolkit_of(&config.provider, &config.integration) {
                allowed.push((self.toolkit(scope, &toolkit.slug).await?, config.access.execution));
            }
        }
        Ok(allowed)
    }

    async fn fitting_tools(&self, scope: Scope, filter: &ToolFilter) -> Result<Vec<Tool>, ApiError> {
        let mut toolkits: Vec<Arc<Toolkit>> = Vec::new();
        for slug in &filter.toolkits {
            let toolkit = self.toolkit(scope, slug).await?;
            if !toolkits.iter().any(|known| known.slug == toolkit.slug) {
                toolkits.push(toolkit);
            }
        }
        let allowed = self.allowed_by(scope, &filter.auth_configs).await?;
        if toolkits.is_empty() {
            toolkits.extend(allowed.iter().map(|(toolkit, _)| toolkit.clone()));
        }
        let is_allowed = |tool: &Tool| {
            let by = |(toolkit, tools): &(Arc<Toolkit>, Option<Vec<String>>)| {
                toolkit.slug == tool.toolkit.slug && tools.as_ref().is_none_or(|tools| tools.iter().any(|slug| slug == tool.slug()))
            };
            filter.auth_configs.is_empty() || allowed.iter().any(by)
        };
        let names = self.names(scope).await?;
        let search = filter.search.as_deref().map(str::trim).filter(|search| !search.is_empty());
        let mut found = match search {
            Some(sentence) => self.searched_tools(scope, &names, sentence).await?,
            None if toolkits.is_empty() => names.toolkits().iter().flat_map(Toolkit::tools).collect(),
            None => toolkits.iter().flat_map(Toolkit::tools).collect(),
        };
        found.retain(|tool| {
            let in_toolkit = toolkits.is_empty() || toolkits.iter().any(|toolkit| toolkit.slug == tool.toolkit.slug);
            let has_tag = filter.tags.is_empty() || tags(tool).iter().any(|tag| filter.tags.iter().any(|wanted| wanted == tag));
            let has_scope = filter.scopes.is_empty() || tool.action().scopes.iter().any(|scope| filter.scopes.contains(scope));
            in_toolkit && has_tag && has_scope && is_allowed(tool)
        });
        // The TypeScript SDK asks for important ones by itself. Where a toolkit says of none that it is, all are.
        if filter.important {
            let marked: Vec<String> =
                found.iter().filter(|tool| tags(tool).contains(&IMPORTANT)).map(|tool| tool.toolkit.slug.clone()).collect();
            found.retain(|tool| !marked.contains(&tool.toolkit.slug) || tags(tool).contains(&IMPORTANT));
        }
        Ok(found)
    }

    /// The tools that fit a sentence, best first.
    pub(crate) async fn searched_tools(&self, scope: Scope, names: &Names, sentence: &str) -> Result<Vec<Tool>, ApiError> {
        let found = self.parts().discovery.ranked(scope, sentence, LOOKED_AT).await?;
        let tool = |found: &catalog::Found| names.toolkit_of(found.integration.provider, &found.integration.key)?.tool(found.item.key());
        Ok(found.iter().filter_map(tool).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_one_for_all_or_one_for_each() {
        assert_eq!(Versions::read(None).unwrap(), Versions::default());
        assert_eq!(Versions::read(Some("latest")).unwrap().of("github"), Some("latest"));
        let each = Versions::read(Some(r#"{"GITHUB": "20260101_00"}"#)).unwrap();
        assert_eq!((each.of("github"), each.of("gmail")), (Some("20260101_00"), None));
        assert_eq!(Versions::read(Some("{")).unwrap_err().status, 400);
    }
}
