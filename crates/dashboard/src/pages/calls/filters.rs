//! Which calls a page is about. The API knows the same names, so what a form says is passed on as it is.

use serde::Deserialize;

use crate::path::Path;

/// The query of every page of calls.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    pub(super) tool: Option<String>,
    pub(super) connection_id: Option<String>,
    pub(super) key_id: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
    pub(super) run_id: Option<String>,
    pub(super) delivery_id: Option<String>,
    /// Where an older page begins.
    pub(super) cursor: Option<String>,
    /// Whether new calls come in by themselves.
    pub(super) live: Option<String>,
    /// The newest call that is shown already.
    pub(super) after: Option<String>,
    /// What an export is written as.
    pub(super) format: Option<String>,
}

impl Asked {
    fn filters(&self) -> [(&'static str, &Option<String>); 9] {
        [
            ("tool", &self.tool),
            ("connection_id", &self.connection_id),
            ("key_id", &self.key_id),
            ("agent_id", &self.agent_id),
            ("outcome", &self.outcome),
            ("since", &self.since),
            ("until", &self.until),
            ("run_id", &self.run_id),
            ("delivery_id", &self.delivery_id),
        ]
    }

    /// An address about the same calls.
    pub(super) fn filtered(&self, path: Path) -> Path {
        self.filters().into_iter().fold(path, |path, (name, value)| path.with_some(name, value.as_deref().map(str::trim)))
    }

    pub(super) fn is_filtered(&self) -> bool {
        self.filters().into_iter().any(|(_, value)| is_some(value.as_deref()))
    }

    /// New calls can only come in where the newest are shown.
    pub(super) fn is_live(&self) -> bool {
        is_some(self.live.as_deref()) && !is_some(self.cursor.as_deref())
    }
}

fn is_some(value: Option<&str>) -> bool {
    value.is_some_and(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_leaves_empty_does_not_filter() {
        let asked = Asked {
            tool: Some(" tools.native.* ".to_owned()),
            outcome: Some(String::new()),
            since: Some("  ".to_owned()),
            ..Asked::default()
        };
        assert_eq!(asked.filtered(Path::new("/tools/calls")).to_string(), "/tools/calls?tool=tools.native.%2A");
        assert!(asked.is_filtered() && !Asked { outcome: Some(String::new()), ..Asked::default() }.is_filtered());
    }

    #[test]
    fn older_pages_are_not_live() {
        let asked = |live: &str, cursor: &str| Asked { live: Some(live.to_owned()), cursor: Some(cursor.to_owned()), ..Asked::default() };
        assert!(asked("1", "").is_live() && !asked("1", "x").is_live() && !asked("", "").is_live());
    }
}
