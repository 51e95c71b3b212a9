//! Tools of a caller's own. They run in the caller's process, so a session only gives them names, and finds them beside its own.

use document::ToSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::blocks::{CustomTool, CustomToolkit, Experimental};
use crate::Refusal;
use crate::names::Names;
use crate::schema;

/// How the slugs of tools of a caller's own begin, and how long they may be.
const LOCAL: &str = "LOCAL_";
const MAX_SLUG: usize = 60;
const MAX_CUSTOM: usize = 200;

/// A tool of the caller's own under the slug that a model calls it by.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = composio::ListedCustomTool)]
pub struct ListedCustomTool {
    pub slug: String,
    pub original_slug: String,
    pub name: String,
    pub description: String,
    #[schema(value_type = Object)]
    pub input_schema: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends_toolkit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<bool>,
}

/// Tools of the caller's own under one name.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = composio::ListedCustomToolkit)]
pub struct ListedCustomToolkit {
    pub slug: String,
    pub name: String,
    pub description: String,
    pub tools: Vec<ListedCustomTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<bool>,
}

/// What a request brings along.
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomTools {
    pub(crate) tools: Option<Vec<ListedCustomTool>>,
    pub(crate) toolkits: Option<Vec<ListedCustomToolkit>>,
}

impl CustomTools {
    /// Whether a slug is one of a caller's own.
    pub(crate) fn is_one(slug: &str) -> bool {
        slug.to_ascii_uppercase().starts_with(LOCAL)
    }

    /// The tools that a request brings along, each under its slug.
    pub(crate) fn read(experimental: Option<&Experimental>, names: &Names) -> Result<Self, Refusal> {
        let Some(experimental) = experimental else { return Ok(Self::default()) };
        let alone = experimental.custom_tools.as_deref();
        let kits = experimental.custom_toolkits.as_deref();
        if alone.map_or(0, <[_]>::len) + kits.into_iter().flatten().map(|kit| 1 + kit.tools.len()).sum::<usize>() > MAX_CUSTOM {
            return Err(Refusal::bad_request(format!("A session takes {MAX_CUSTOM} custom tools.")));
        }
        let tools = alone.map(|tools| tools.iter().map(|tool| alone_tool(tool, names)).collect::<Result<_, _>>()).transpose()?;
        let toolkits = kits.map(|kits| kits.iter().map(|kit| toolkit(kit, names)).collect::<Result<_, _>>()).transpose()?;
        let custom = Self { tools, toolkits };
        let mut slugs: Vec<&str> = custom.all().map(|(_, tool)| tool.slug.as_str()).collect();
        slugs.sort_unstable();
        if let Some([twice, ..]) = slugs.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Refusal::bad_request(format!("There are two custom tools `{twice}`.")));
        }
        Ok(custom)
    }

    /// Each with the toolkit that it is shown under.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &ListedCustomTool)> {
        let alone = self.tools.iter().flatten().map(|tool| (tool.extends_toolkit.as_deref().unwrap_or("custom"), tool));
        let grouped = self.toolkits.iter().flatten().flat_map(|kit| kit.tools.iter().map(|tool| (kit.slug.as_str(), tool)));
        alone.chain(grouped)
    }

    /// Those that share words with a sentence, the best first.
    pub(crate) fn fitting<'a>(&'a self, sentence: &str) -> Vec<(&'a str, &'a ListedCustomTool)> {
        let wanted = words(sentence);
        let shared = |tool: &ListedCustomTool| {
            let own = words(&format!("{} {} {}", tool.name, tool.description, tool.original_slug));
            wanted.iter().filter(|word| own.contains(word)).count()
        };
        let mut found: Vec<_> = self.all().map(|(kit, tool)| (shared(tool), kit, tool)).filter(|(shared, ..)| *shared > 0).collect();
        found.sort_by_key(|(shared, ..)| std::cmp::Reverse(*shared));
        found.into_iter().map(|(_, kit, tool)| (kit, tool)).collect()
    }
}

/// The words of a text that say something.
fn words(text: &str) -> Vec<String> {
    let all = text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
    all.filter(|word| word.chars().count() > 2 && !matches!(word.as_str(), "the" | "and" | "for" | "with" | "from" | "that" | "this"))
        .collect()
}

fn alone_tool(tool: &CustomTool, names: &Names) -> Result<ListedCustomTool, Refusal> {
    let kit = tool.extends_toolkit.as_deref().map(|slug| {
        let known = names.toolkit(slug).map_err(|refusal| Refusal::bad_request(refusal.message))?;
        Ok::<_, Refusal>(known.slug.clone())
    });
    let kit = kit.transpose()?;
    let mut listed = listed(tool, kit.as_deref())?;
    listed.extends_toolkit = kit;
    Ok(listed)
}

fn toolkit(kit: &CustomToolkit, names: &Names) -> Result<ListedCustomToolkit, Refusal> {
    if names.find_toolkit(&kit.slug).is_some() {
        return Err(Refusal::bad_request(format!("`{}` is a toolkit already; give the custom one another slug.", kit.slug)));
    }
    let tools = kit.tools.iter().map(|tool| listed(tool, Some(&kit.slug))).collect::<Result<_, _>>()?;
    let CustomToolkit { slug, name, description, preload, .. } = kit.clone();
    Ok(ListedCustomToolkit { slug, name, description, tools, preload })
}

fn listed(tool: &CustomTool, kit: Option<&str>) -> Result<ListedCustomTool, Refusal> {
    let CustomTool { slug: original_slug, name, description, input_schema, output_schema, preload, .. } = tool.clone();
    let kit = kit.map(|kit| format!("{}_", kit.to_uppercase())).unwrap_or_default();
    let slug = format!("{LOCAL}{kit}{}", original_slug.to_uppercase());
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if original_slug.is_empty() || slug.len() > MAX_SLUG || !slug.chars().all(fits) {
        let message =
            format!("`{slug}`: the slug of a custom tool has letters, digits, `_` and `-`, {MAX_SLUG} with what stands before it.");
        return Err(Refusal::bad_request(message));
    }
    let input_schema = schema::of_input(Value::Object(input_schema));
    Ok(ListedCustomTool { slug, original_slug, name, description, input_schema, output_schema, extends_toolkit: None, preload })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_of_a_callers_own_have_slugs_of_their_own() {
        let tool = |slug: &str| json!({"slug": slug, "name": slug, "description": "search the files", "input_schema": {"type": "object"}});
        let kit = json!({"slug": "dev", "name": "Dev", "description": "", "tools": [tool("grep")]});
        let read = |experimental: Value| {
            let experimental: Experimental = serde_json::from_value(experimental).unwrap();
            CustomTools::read(Some(&experimental), &Names::default())
        };
        let custom = read(json!({"custom_tools": [tool("grep")], "custom_toolkits": [kit]})).unwrap();
        let slugs: Vec<_> = custom.all().map(|(_, tool)| tool.slug.as_str()).collect();
        assert_eq!(slugs, ["LOCAL_GREP", "LOCAL_DEV_GREP"]);
        assert_eq!(custom.fitting("Search a file with grep").len(), 2);
        assert!(custom.fitting("send an email").is_empty());
        assert!(read(json!({"custom_tools": [tool("a"), tool("A")]})).unwrap_err().message.contains("two custom tools"));
        assert!(read(json!({"custom_tools": [tool("a b")]})).is_err());
        assert!(read(json!({"custom_tools": [tool(&"x".repeat(70))]})).is_err());
    }
}
