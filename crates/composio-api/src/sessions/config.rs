//! The config of a session as it is kept, and how a change is made to it. Slugs in it are those of the table; what it names was there when it
//! was saved, and is looked up again whenever it is used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::blocks::{
    ExecuteSwitch, Given, ManageConnections, MultiAccount, Preload, PreloadedTools, SessionBlocks, Several, Switch, TagFilter, ToolFilter,
    ToolkitFilter,
};
use super::custom::CustomTools;
use crate::Refusal;
use crate::names::Names;

/// How many accounts of one toolkit a user may have where several are wanted and nothing is said.
const USUAL_ACCOUNTS: u32 = 5;
/// How many slugs and accounts a config may name.
const MAX_NAMED: usize = 2000;

/// What a session lets its user use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) toolkits: Option<ToolkitFilter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tools: BTreeMap<String, ToolFilter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<TagFilter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) auth_configs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) connected_accounts: BTreeMap<String, Vec<String>>,
    pub(crate) connecting: Connecting,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) several: Option<SeveralAccounts>,
    pub(crate) preload: PreloadedTools,
    pub(crate) search: Switch,
    pub(crate) execute: ExecuteSwitch,
}

/// Whether, and how, accounts are connected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Connecting {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) callback_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removes: Option<bool>,
}

/// How several accounts of one toolkit are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SeveralAccounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) most: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) must_choose: Option<bool>,
}

impl Config {
    /// Whether the session connects accounts.
    pub(crate) fn connects(&self) -> bool {
        self.connecting.enable.unwrap_or(true)
    }

    pub(crate) fn searches(&self) -> bool {
        self.search.enable.unwrap_or(true)
    }

    pub(crate) fn calls_several(&self) -> bool {
        self.execute.enable_multi_execute.unwrap_or(true)
    }

    pub(crate) fn waits(&self) -> bool {
        self.connects() && self.connecting.waits.unwrap_or(false)
    }

    pub(crate) fn has_several(&self) -> bool {
        self.several.is_some_and(|several| several.enable.unwrap_or(false))
    }

    /// Whether a call has to name its account where there are several.
    pub(crate) fn must_choose(&self) -> bool {
        self.has_several() && self.several.is_some_and(|several| several.must_choose.unwrap_or(false))
    }

    /// How many accounts of one toolkit a user may have.
    pub(crate) fn most_accounts(&self) -> usize {
        let most = self.several.and_then(|several| several.most).unwrap_or(USUAL_ACCOUNTS);
        if self.has_several() { usize::try_from(most).unwrap_or(usize::MAX) } else { 1 }
    }

    /// Whether it says which tools there are, as against which there are not.
    pub(crate) fn is_closed(&self) -> bool {
        let toolkits = self.toolkits.as_ref().is_some_and(|toolkits| toolkits.enable.is_some());
        let tags = |tags: Option<&TagFilter>| tags.is_some_and(|tags| tags.enable.is_some());
        toolkits || tags(self.tags.as_ref()) || self.tools.values().any(|tools| tools.enable.is_some() || tags(tools.tags.as_ref()))
    }

    /// The config after a change. Every slug in it is one of the table.
    pub(crate) fn changed(mut self, blocks: SessionBlocks, names: &Names) -> Result<Self, Refusal> {
        let names_preloaded = blocks.preload.value().is_some();
        blocks.toolkits.apply(&mut self.toolkits);
        let mut tools = Some(std::mem::take(&mut self.tools));
        blocks.tools.apply(&mut tools);
        self.tools = tools.unwrap_or_default();
        blocks.tags.apply(&mut self.tags);
        let mut auth_configs = Some(std::mem::take(&mut self.auth_configs));
        blocks.auth_configs.apply(&mut auth_configs);
        self.auth_configs = auth_configs.unwrap_or_default();
        match blocks.connected_accounts {
            Given::Absent => {}
            Given::Null => self.connected_accounts.clear(),
            Given::Value(pinned) => self.connected_accounts = pinned.into_iter().map(|(slug, Several(all))| (slug, all)).collect(),
        }
        match blocks.manage_connections {
            Given::Absent => {}
            Given::Null => self.connecting = Connecting::default(),
            Given::Value(ManageConnections { enable, callback_url, enable_wait_for_connections, enable_connection_removal }) => {
                enable.apply(&mut self.connecting.enable);
                callback_url.apply(&mut self.connecting.callback_url);
                enable_wait_for_connections.apply(&mut self.connecting.waits);
                enable_connection_removal.apply(&mut self.connecting.removes);
            }
        }
        match blocks.multi_account {
            Given::Absent => {}
            Given::Null => self.several = None,
            Given::Value(MultiAccount { enable, max_accounts_per_toolkit, require_explicit_selection }) => {
                let several = self.several.get_or_insert_default();
                enable.apply(&mut several.enable);
                max_accounts_per_toolkit.apply(&mut several.most);
                require_explicit_selection.apply(&mut several.must_choose);
            }
        }
        match blocks.preload {
            Given::Absent => {}
            Given::Null => self.preload = PreloadedTools::default(),
            Given::Value(Preload { tools }) => self.preload = tools,
        }
        let (mut search, mut execute) = (Some(self.search), Some(self.execute));
        blocks.search.apply(&mut search);
        blocks.execute.apply(&mut execute);
        (self.search, self.execute) = (search.unwrap_or_default(), execute.unwrap_or_default());
        let config = self.with_known_slugs(names)?;
        if names_preloaded && let PreloadedTools::Slugs(slugs) = &config.preload {
            let outside = slugs.iter().find(|slug| !names.find_tool(slug).is_some_and(|tool| config.has_tool(&tool)));
            if let Some(outside) = outside {
                return Err(Refusal::bad_request(format!("`preload.tools`: `{outside}` is outside of what this session may use.")));
            }
        }
        Ok(config)
    }

    fn with_known_slugs(mut self, names: &Names) -> Result<Self, Refusal> {
        self.check_size()?;
        if let Some(toolkits) = &mut self.toolkits {
            if toolkits.enable.is_some() && toolkits.disable.is_some() {
                return Err(Refusal::bad_request("`toolkits` has either `enable` or `disable`."));
            }
            for list in [&mut toolkits.enable, &mut toolkits.disable].into_iter().flatten().chain([&mut toolkits.require_approval]) {
                *list = list.iter().map(|slug| toolkit_slug(names, slug)).collect::<Result<_, _>>()?;
            }
        }
        let mut tools = BTreeMap::new();
        for (slug, filter) in std::mem::take(&mut self.tools) {
            let slug = toolkit_slug(names, &slug)?;
            tools.insert(slug.clone(), tools_of(names, &slug, filter)?);
        }
        self.tools = tools;
        self.auth_configs = with_toolkit_slugs(names, self.auth_configs)?;
        self.connected_accounts = with_toolkit_slugs(names, self.connected_accounts)?;
        if let PreloadedTools::Slugs(slugs) = &mut self.preload {
            // Those of the caller's own are listed by the caller.
            slugs.retain(|slug| !CustomTools::is_one(slug));
            *slugs = slugs.iter().map(|slug| tool_slug(names, slug)).collect::<Result<_, _>>()?;
        } else if !self.is_closed() {
            let message = "`preload.tools` can be `all` only where `toolkits`, `tools` or `tags` say which tools there are.";
            return Err(Refusal::bad_request(message));
        }
        if self.several.and_then(|several| several.most).is_some_and(|most| !(2..=10).contains(&most)) {
            return Err(Refusal::bad_request("`multi_account.max_accounts_per_toolkit` must be 2 to 10."));
        }
        Ok(self)
    }

    fn check_size(&self) -> Result<(), Refusal> {
        let length = |list: Option<&Vec<String>>| list.map_or(0, Vec::len);
        let lists = |enable, disable| length(enable) + length(disable);
        let toolkits = self.toolkits.as_ref().map_or(0, |toolkits| lists(toolkits.enable.as_ref(), toolkits.disable.as_ref()));
        let tools: usize = self.tools.values().map(|tools| 1 + lists(tools.enable.as_ref(), tools.disable.as_ref())).sum();
        let pinned: usize = self.connected_accounts.values().map(|all| 1 + all.len()).sum();
        let preloaded = if let PreloadedTools::Slugs(slugs) = &self.preload { slugs.len() } else { 0 };
        if toolkits + tools + pinned + preloaded + self.auth_configs.len() > MAX_NAMED {
            return Err(Refusal::bad_request(format!("A session may name {MAX_NAMED} toolkits, tools and accounts.")));
        }
        Ok(())
    }
}

/// What a caller named that is not there is a bad request in a config, not a missing page.
fn as_bad_request(refusal: Refusal) -> Refusal {
    Refusal::bad_request(refusal.message)
}

fn toolkit_slug(names: &Names, slug: &str) -> Result<String, Refusal> {
    names.toolkit(slug).map(|toolkit| toolkit.slug.clone()).map_err(as_bad_request)
}

fn tool_slug(names: &Names, slug: &str) -> Result<String, Refusal> {
    names.tool(slug).map(|tool| tool.slug().to_owned()).map_err(as_bad_request)
}

fn with_toolkit_slugs<T>(names: &Names, map: BTreeMap<String, T>) -> Result<BTreeMap<String, T>, Refusal> {
    map.into_iter().map(|(slug, value)| Ok((toolkit_slug(names, &slug)?, value))).collect()
}

fn tools_of(names: &Names, toolkit: &str, mut filter: ToolFilter) -> Result<ToolFilter, Refusal> {
    let said = [filter.enable.is_some(), filter.disable.is_some(), filter.tags.is_some()];
    if said.into_iter().filter(|said| *said).count() > 1 {
        return Err(Refusal::bad_request(format!("`tools.{toolkit}` has either `enable`, `disable` or `tags`.")));
    }
    for list in [&mut filter.enable, &mut filter.disable].into_iter().flatten().chain([&mut filter.require_approval]) {
        for slug in list {
            let tool = names.tool(slug).map_err(as_bad_request)?;
            if tool.toolkit.slug != toolkit {
                return Err(Refusal::bad_request(format!("`tools.{toolkit}`: `{}` is a tool of `{}`.", tool.slug(), tool.toolkit.slug)));
            }
            tool.slug().clone_into(slug);
        }
    }
    Ok(filter)
}
