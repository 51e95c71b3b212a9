//! Connect links: where they may lead people in the end, and whose sites may show the pages behind them. Plain values, and functions of them.

use kernel::{ProjectId, Scope};
use serde_json::Value;
use store::{Row, StoreError, args};
use url::Url;

use crate::{AccountError, Accounts};

/// How many of each a project may name, and how long each may be.
const MOST: usize = 50;
const MAX_LENGTH: usize = 2048;

/// What a project says about its connect links; nothing is allowed where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectLinks {
    pub return_to: Vec<ReturnPattern>,
    /// Sites that may show the pages in a frame, and that are told how a link ended that they opened.
    pub origins: Vec<SiteOrigin>,
}

/// An address that people may be sent to, or with `/*` at its end all addresses below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnPattern {
    url: Url,
    is_prefix: bool,
}

/// The origin of a site: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOrigin(String);

impl SiteOrigin {
    /// As browsers write it. It holds nothing that could end a header or a script.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn read(text: &str) -> Result<Self, AccountError> {
        let url = web_address("origins", text)?;
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(AccountError::Setting(format!(
                "`origins`: `{}` must be an origin alone, such as `{}`.",
                shown(text),
                url.origin().ascii_serialization()
            )));
        }
        Ok(Self(url.origin().ascii_serialization()))
    }
}

impl ReturnPattern {
    fn read(text: &str) -> Result<Self, AccountError> {
        let (address, is_prefix) = text.strip_suffix("/*").map_or((text.to_owned(), false), |start| (format!("{start}/"), true));
        let url = web_address("return_to", &address)?;
        if url.query().is_some() || url.fragment().is_some() || address.contains('*') {
            let why = "must be an address without a query, or end in `/*` for all below it";
            return Err(AccountError::Setting(format!("`return_to`: `{}` {why}.", shown(text))));
        }
        Ok(Self { url, is_prefix })
    }

    fn fits(&self, url: &Url) -> bool {
        let path = url.path();
        self.url.origin() == url.origin() && if self.is_prefix { path.starts_with(self.url.path()) } else { path == self.url.path() }
    }
}

impl std::fmt::Display for ReturnPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.url, if self.is_prefix { "*" } else { "" })
    }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// A whole web address that nobody's name or password stands in.
fn web_address(name: &str, text: &str) -> Result<Url, AccountError> {
    let refused = |why: &str| AccountError::Setting(format!("`{name}`: `{}` {why}.", shown(text)));
    if text.len() > MAX_LENGTH {
        return Err(refused(&format!("has more than {MAX_LENGTH} characters")));
    }
    let url: Url = text.parse().map_err(|_| refused("is no address; begin it with `https://`"))?;
    // The host becomes a part of a header, where some letters that parsers of addresses let through mean something.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '[' | ']');
    let has_host = url.host_str().is_some_and(|host| !host.is_empty() && host.chars().all(is_plain));
    if !matches!(url.scheme(), "https" | "http") || !has_host {
        return Err(refused("is no web address; begin it with `https://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("holds a user name or a password"));
    }
    Ok(url)
}

impl ConnectLinks {
    /// Takes what a project wants to allow.
    pub fn read(return_to: &[String], origins: &[String]) -> Result<Self, AccountError> {
        for (name, list) in [("return_to", return_to), ("origins", origins)] {
            if list.len() > MOST {
                return Err(AccountError::Setting(format!("`{name}` may have {MOST} entries.")));
            }
        }
        let mut links = Self::default();
        for pattern in return_to {
            let pattern = ReturnPattern::read(pattern)?;
            if !links.return_to.contains(&pattern) {
                links.return_to.push(pattern);
            }
        }
        for origin in origins {
            let origin = SiteOrigin::read(origin)?;
            if !links.origins.contains(&origin) {
                links.origins.push(origin);
            }
        }
        Ok(links)
    }

    /// The address that people are sent to in the end, if the project allows it.
    pub fn return_address(&self, text: &str) -> Result<Url, AccountError> {
        let url = web_address("return_to", text)?;
        if self.return_to.iter().any(|pattern| pattern.fits(&url)) {
            return Ok(url);
        }
        Err(AccountError::Setting(format!(
            "`return_to`: `{}` is not among the addresses that this project allows. Add it with `PUT /project/connect-links` or `toolyard connect-links`.",
            shown(text)
        )))
    }

    /// The same for whoever may choose any address as long as the project names none.
    pub fn return_address_or_any(&self, text: &str) -> Result<Url, AccountError> {
        if self.return_to.is_empty() { web_address("return_to", text) } else { self.return_address(text) }
    }

    fn stored(row: &Row) -> Result<Self, StoreError> {
        let list = |column: &str| {
            let list = row.get::<Value>(column)?;
            serde_json::from_value::<Vec<String>>(list).map_err(|_| StoreError::Column(column.to_owned()))
        };
        Self::read(&list("return_to")?, &list("origins")?).map_err(|_| StoreError::Column("return_to".to_owned()))
    }
}

impl Accounts {
    #[kernel::boxed]
    pub async fn connect_links(&self, project: ProjectId) -> Result<ConnectLinks, AccountError> {
        let sql = "select return_to, origins from project_connect_links where project_id = $1";
        let row = self.db.optional(sql, args![project]).await?;
        Ok(row.as_ref().map(ConnectLinks::stored).transpose()?.unwrap_or_default())
    }

    /// Puts what is allowed in the place of what was allowed before.
    #[kernel::boxed]
    pub async fn set_connect_links(&self, scope: Scope, links: &ConnectLinks) -> Result<(), AccountError> {
        let sql = "insert into project_connect_links (project_id, return_to, origins, updated_at, updated_by_id) values ($1, $2, $3, $4, $5) \
                   on conflict (project_id) do update set return_to = excluded.return_to, origins = excluded.origins, \
                   updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        let return_to = Value::from(links.return_to.iter().map(ToString::to_string).collect::<Vec<_>>());
        let origins = Value::from(links.origins.iter().map(|origin| origin.0.clone()).collect::<Vec<_>>());
        self.db.execute(sql, args![scope.project, &return_to, &origins, self.clock.now(), scope.author()]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(return_to: &[&str], origins: &[&str]) -> Result<ConnectLinks, AccountError> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        ConnectLinks::read(&owned(return_to), &owned(origins))
    }

    #[test]
    fn people_are_sent_only_where_the_project_says() {
        let links = links(&["https://app.example/done", "https://app.example/in/*", "http://localhost:3000/*"], &[]).unwrap();
        for good in [
            "https://app.example/done",
            "https://APP.example:443/done?x=1#y",
            "https://app.example/in/",
            "https://app.example/in/a/b",
            "http://localhost:3000/",
        ] {
            assert!(links.return_address(good).is_ok(), "{good}");
        }
        for bad in [
            "https://app.example/",
            "https://app.example/done/more",
            "https://app.example/in",
            "https://app.example/in/../x",
            "https://app.example/in/%2e%2e/x",
            "http://app.example/done",
            "https://app.example:8443/done",
            "https://app.example.evil/done",
            "https://app.example@evil.example/done",
            "https://u:p@app.example/done",
            "//app.example/done",
            "/done",
            "",
            "javascript:alert(1)",
            "data:text/html,x",
            "https:app.example",
            "http://localhost:3001/",
        ] {
            assert!(links.return_address(bad).is_err(), "{bad}");
        }
        assert!(ConnectLinks::default().return_address("https://app.example/done").is_err());
        assert!(ConnectLinks::default().return_address_or_any("https://app.example/done").is_ok());
        assert!(ConnectLinks::default().return_address_or_any("javascript:alert(1)").is_err());
        assert!(links.return_address_or_any("https://other.example/").is_err());
    }

    #[test]
    fn what_is_allowed_is_written_as_it_is_meant() {
        let links = links(&["https://a.example", "https://a.example/x/*"], &["https://A.example", "https://a.example/", "http://[::1]:80"])
            .unwrap();
        let patterns: Vec<String> = links.return_to.iter().map(ToString::to_string).collect();
        assert_eq!(patterns, ["https://a.example/", "https://a.example/x/*"]);
        let origins: Vec<&str> = links.origins.iter().map(SiteOrigin::as_str).collect();
        assert_eq!(origins, ["https://a.example", "http://[::1]"]);
    }

    #[test]
    fn what_cannot_be_allowed_is_refused() {
        for wrong in [
            "https://a.example/*/x",
            "https://*.example/",
            "https://a.example/?q=1",
            "https://a.example/#x",
            "ftp://a.example/",
            "a.example",
            "https://u@a.example/",
        ] {
            assert!(links(&[wrong], &[]).is_err(), "{wrong}");
        }
        for wrong in [
            "https://a.example/x",
            "https://a.example?x",
            "*",
            "null",
            "https://a.example; script-src *",
            "https://a.example;script-src",
            "https://a,b.example",
            "https://a'b.example",
            "file:///",
            "",
        ] {
            assert!(links(&[], &[wrong]).is_err(), "{wrong}");
        }
        assert!(links(&["https://a.example/"; MOST + 1], &[]).is_err());
    }
}
