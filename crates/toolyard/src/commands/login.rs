//! `toolyard login` and `toolyard logout`: the command line as a device that a person lets in (RFC 8628), so that no key has to be copied.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use http::HeaderValue;
use kernel::{Clock, Permission, Role, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::{Client, authorization, words};
use super::integrations::text;
use super::print;
use crate::config::Config;
use crate::files;

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// A token is renewed so long before it expires.
const EARLY: Duration = Duration::from_mins(1);
/// What RFC 8628 says where a server does not.
const POLL: u64 = 5;

/// Where to sign in or out.
#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// Address of the server [default: the listening address]
    #[arg(long, env = "TOOLYARD_URL", value_name = "URL")]
    url: Option<String>,
    /// Ask only for these permissions, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Option<Vec<Permission>>,
}

#[derive(Debug, Args)]
pub(super) struct LogoutArgs {
    /// Address of the server [default: the listening address]
    #[arg(long, env = "TOOLYARD_URL", value_name = "URL")]
    url: Option<String>,
}

/// The tokens of a server.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    access_token: String,
    refresh_token: String,
    /// Seconds since 1970.
    expires_at: i64,
}

impl Kept {
    fn of(reply: &Value) -> Option<Self> {
        let text = |name: &str| reply[name].as_str().map(str::to_owned);
        let life = Duration::from_secs(reply["expires_in"].as_u64()?);
        let expires_at = Clock::system().now().plus(life).seconds();
        Some(Self { access_token: text("access_token")?, refresh_token: text("refresh_token")?, expires_at })
    }

    fn is_fresh(&self) -> bool {
        Clock::system().now().plus(EARLY) < Timestamp::from_micros(self.expires_at.saturating_mul(1_000_000))
    }
}

/// The file with the tokens of every server that somebody signed in to, readable by its owner alone.
fn place() -> anyhow::Result<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = var("XDG_CONFIG_HOME").or_else(|| var("HOME").or_else(|| var("USERPROFILE")).map(|home| home.join(".config")));
    Ok(config.context("there is no home directory to keep a login in; give a key with --key or TOOLYARD_KEY")?.join("toolyard"))
}

fn read(dir: &std::path::Path) -> anyhow::Result<BTreeMap<String, Kept>> {
    let path = dir.join("logins.json");
    let Some(text) = files::read(&path)?.filter(|text| !text.is_empty()) else { return Ok(BTreeMap::new()) };
    serde_json::from_str(&text).with_context(|| format!("`{}` is damaged; remove it and run `toolyard login`", path.display()))
}

/// Changes what is kept, while no other command does.
async fn change<T>(work: impl AsyncFnOnce(&mut BTreeMap<String, Kept>) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let dir = place()?;
    files::ensure_dir(&dir)?;
    let held = dir.clone();
    let _lock = tokio::task::spawn_blocking(move || files::lock(&held)).await??;
    let mut all = read(&dir)?;
    let done = work(&mut all).await?;
    files::write_secret(&dir.join("logins.json"), &serde_json::to_string_pretty(&all)?)?;
    Ok(done)
}

/// Whether somebody signed in to a server.
pub(super) fn is_signed_in(server: &str) -> anyhow::Result<bool> {
    match place() {
        Ok(dir) => Ok(read(&dir)?.contains_key(server)),
        Err(_) => Ok(false),
    }
}

/// The token for a server, renewed if it is about to expire. One command at a time renews: a refresh token is good once.
pub(super) async fn token(client: &Client, server: &str) -> anyhow::Result<HeaderValue> {
    const GONE: &str = "the login has ended; run `toolyard login` again";
    let kept = read(&place()?)?.remove(server).context(GONE)?;
    if kept.is_fresh() {
        return authorization("Bearer", &kept.access_token);
    }
    let renewed = change(async |all| {
        let kept = all.get(server).context(GONE)?;
        if kept.is_fresh() {
            return Ok(Some(kept.clone()));
        }
        let fields =
            [("grant_type", "refresh_token"), ("client_id", ::grants::COMMAND_LINE), ("refresh_token", kept.refresh_token.as_str())];
        let (status, reply) = client.form("/oauth/token", &fields).await?;
        if reply["error"] == "invalid_grant" {
            all.remove(server);
            return Ok(None);
        }
        let next = Kept::of(&reply).with_context(|| words(&reply, status))?;
        all.insert(server.to_owned(), next.clone());
        Ok(Some(next))
    });
    authorization("Bearer", &renewed.await?.context(GONE)?.access_token)
}

pub(super) async fn login(config: Config, args: LoginArgs) -> anyhow::Result<()> {
    let client = Client::nobody(&config, args.url.as_deref())?;
    let wanted = args.only.map_or_else(|| Role::Owner.permissions(), |only| only.into_iter().collect());
    let scope = ::grants::write_scope(wanted);
    let (status, device) = client.form("/oauth/device", &[("client_id", ::grants::COMMAND_LINE), ("scope", &scope)]).await?;
    let code = device["device_code"].as_str().with_context(|| words(&device, status))?;
    eprintln!("Open {}", text(&device, "verification_uri_complete"));
    eprintln!("and say yes if it shows the code {}.", text(&device, "user_code"));
    let mut wait = device["interval"].as_u64().unwrap_or(POLL);
    let given = loop {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let fields = [("grant_type", DEVICE_CODE), ("client_id", ::grants::COMMAND_LINE), ("device_code", code)];
        let (status, reply) = client.form("/oauth/token", &fields).await?;
        match reply["error"].as_str() {
            None => break Kept::of(&reply).with_context(|| words(&reply, status))?,
            Some("authorization_pending") => {}
            Some("slow_down") => wait += POLL,
            Some(_) => bail!("{}", words(&reply, status)),
        }
    };
    let before = change(async |all| Ok(all.insert(client.server(), given))).await?;
    if let Some(before) = before {
        hand_back(&client, &before).await?;
    }
    print::out(&format!("signed in to {}; every command for this address uses it now, `toolyard logout` ends it\n", client.server()));
    Ok(())
}

pub(super) async fn logout(config: Config, args: LogoutArgs) -> anyhow::Result<()> {
    let client = Client::nobody(&config, args.url.as_deref())?;
    let server = client.server();
    if !is_signed_in(&server)? {
        bail!("nobody is signed in to {server} here");
    }
    let Some(kept) = change(async |all| Ok(all.remove(&server))).await? else { return Ok(()) };
    hand_back(&client, &kept).await.context("it is forgotten here, and the server may still know it; revoke it with `toolyard grants`")?;
    print::out(&format!("signed out of {server}\n"));
    Ok(())
}

/// Revokes the grant at the server.
async fn hand_back(client: &Client, kept: &Kept) -> anyhow::Result<()> {
    let fields = [("client_id", ::grants::COMMAND_LINE), ("token", kept.refresh_token.as_str())];
    let (status, reply) = client.form("/oauth/revoke", &fields).await?;
    if status.is_success() { Ok(()) } else { bail!("{}", words(&reply, status)) }
}
