//! How people sign in, and for how long.

use std::collections::HashSet;
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use people::oidc::ProviderConfig;
use serde::Deserialize;

use super::{DAY, HOUR, Settings};

/// Identity providers: tables in the file, JSON elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Providers(Vec<ProviderConfig>);

impl FromStr for Providers {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, serde_json::Error> {
        if text.trim().is_empty() { Ok(Self::default()) } else { serde_json::from_str(text) }
    }
}

impl Providers {
    /// What may be shown of them.
    pub(super) fn names(&self) -> String {
        self.0.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>().join(",")
    }
}

/// What the settings say of signing in.
pub(super) fn read(settings: Settings) -> anyhow::Result<people::Settings> {
    let usual = people::Settings::default();
    let lasting = |given: Option<u64>, unit: u64, usual: Duration| {
        given.map_or(usual, |number| Duration::from_secs(number.max(1).saturating_mul(unit)))
    };
    let providers = settings.sign_in.unwrap_or_default().0;
    let mut names = HashSet::new();
    for provider in &providers {
        if let Some(problem) = provider.problem() {
            bail!("`sign_in` is not usable: {problem}");
        }
        if !names.insert(provider.name.as_str()) {
            bail!("`sign_in` is not usable: two providers are called `{}`", provider.name);
        }
    }
    Ok(people::Settings {
        idle: lasting(settings.session_idle, HOUR, usual.idle),
        age: lasting(settings.session_age, DAY, usual.age),
        passwords: settings.passwords.unwrap_or(usual.passwords),
        providers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let file: Settings = toml::from_str(text).unwrap();
        read(file).unwrap_err().to_string()
    }

    #[test]
    fn providers_are_tables_of_the_file_or_json() {
        let table = "[[sign_in]]\nname = 'corp'\nissuer = 'https://id.example'\nclient_id = 'x'\nclient_secret = 'hush'\n\
                     [[sign_in.rules]]\ngroup = 'eng'\nproject = 'default'\nrole = 'editor'\n";
        let read = read(toml::from_str(table).unwrap()).unwrap();
        assert_eq!(read.providers[0].rules.len(), 1);
        assert!(!format!("{read:?}").contains("hush"), "{read:?}");
        let json: Providers = r#"[{"name": "corp", "issuer": "https://id.example", "client_id": "x"}]"#.parse().unwrap();
        assert_eq!(json.names(), "corp");
        assert!(problem(&format!("{table}{table}")).contains("two providers are called `corp`"));
        assert!(problem(&table.replace("group = 'eng'\n", "")).contains("must have one of `group`"));
        assert!(problem(&table.replace("https://id.example", "id.example")).contains("is not a web address"));
        assert!(problem(&table.replace("'corp'", "'a/b'")).contains("cannot be the name"));
    }
}
