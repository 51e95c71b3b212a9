//! What a link says that leads a person to connect an account: the language of our pages, and where the browser goes in the end.

use kernel::{ConnectionId, Language};
use serde::{Deserialize, Serialize};
use url::Url;

/// How people are led. It is sealed with the attempt, so that nobody but whoever began it decides where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOptions {
    /// Left out, the browser says which language it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Where the browser goes when the attempt is over, however it ended; how it ended is added as `status`, and which account it is about.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "written")]
    pub return_to: Option<Url>,
    /// What names the account there, in place of `connection_id`: a parameter and its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<(String, String)>,
}

/// An address as text.
mod written {
    use serde::{Deserialize, Deserializer, Serializer};
    use url::Url;

    #[expect(clippy::ref_option, reason = "serde hands over what the field is")]
    pub(super) fn serialize<S: Serializer>(url: &Option<Url>, serializer: S) -> Result<S::Ok, S::Error> {
        match url {
            Some(url) => serializer.serialize_str(url.as_str()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

impl LinkOptions {
    /// Where the browser goes, with how it ended.
    pub fn leads_to(&self, connection: ConnectionId, is_connected: bool) -> Option<Url> {
        let mut url = self.return_to.clone()?;
        let (name, value) = self.named.clone().unwrap_or_else(|| ("connection_id".to_owned(), connection.to_string()));
        url.query_pairs_mut().append_pair("status", if is_connected { "success" } else { "failed" }).append_pair(&name, &value);
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_ended_is_added_to_what_is_there() {
        let (id, named) = (ConnectionId::nil(), Some(("account".to_owned(), "a&b".to_owned())));
        let link = |url: &str| LinkOptions { return_to: Some(url.parse().unwrap()), ..LinkOptions::default() };
        let led = |link: LinkOptions, is_connected| link.leads_to(id, is_connected).unwrap().to_string();
        assert_eq!(led(link("https://app.example/done"), true), format!("https://app.example/done?status=success&connection_id={id}"));
        let other = LinkOptions { named, ..link("https://app.example/done?x=1&y=%20#top") };
        assert_eq!(led(other, false), "https://app.example/done?x=1&y=%20&status=failed&account=a%26b#top");
        assert_eq!(LinkOptions::default().leads_to(id, true), None);
        let other = link("https://app.example/done");
        assert_eq!(serde_json::from_value::<LinkOptions>(serde_json::json!(other)).unwrap(), other);
        let kept: LinkOptions = serde_json::from_str("{}").unwrap();
        assert_eq!(kept, LinkOptions::default(), "attempts from before have no options");
    }
}
