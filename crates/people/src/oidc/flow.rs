//! The way to a provider and back.

use accounts::{AccountError, insert_user};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::key::{KeyHash, PlainKey};
use kernel::{ProjectId, Role, Timestamp, UserId};
use secrecy::SecretString;
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::args;
use url::Url;

use super::claims::{self, Expected, Person};
use super::jwt::{self, Unproven};
use super::provider::Provider;
use super::rules;
use crate::sessions::Holder;
use crate::{ATTEMPT_LIFE, OpenedSession, People, PeopleError, Visitor};

/// Somebody who sets out for a provider.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    pub provider: &'a str,
    /// Where the provider sends them back to; one address for each provider.
    pub redirect: &'a str,
    /// The browser that it begins in, and must end in.
    pub browser: &'a str,
    pub return_to: &'a str,
    /// The invitation that they hold, which lets somebody in whom no rule knows.
    pub invitation: Option<&'a str>,
}

/// Somebody who comes back from a provider.
#[derive(Clone, Copy, Debug)]
pub struct Returned<'a> {
    pub provider: &'a str,
    pub redirect: &'a str,
    pub browser: &'a str,
    pub state: &'a str,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    /// Who answers (RFC 9207).
    pub issuer: Option<&'a str>,
}

/// Somebody who came back and is signed in.
#[derive(Debug)]
pub struct Arrived {
    pub opened: OpenedSession,
    pub return_to: String,
}

impl People {
    /// The providers that people can choose from: names and labels.
    pub fn providers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.providers.iter().map(|provider| (provider.name(), provider.label()))
    }

    /// The issuers that somebody signed in with.
    #[kernel::boxed]
    pub async fn issuers(&self, user: UserId) -> Result<Vec<String>, PeopleError> {
        let rows = self.0.db.all("select issuer from identities where user_id = $1 order by issuer", args![user]).await?;
        Ok(rows.iter().map(|row| row.get("issuer")).collect::<Result<_, _>>()?)
    }

    fn provider(&self, name: &str) -> Result<&Provider, PeopleError> {
        let found = self.0.providers.iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| PeopleError::UnknownProvider(name.chars().take(100).collect()))
    }

    /// Begins a sign-in at a provider: the address to go to.
    pub async fn start(&self, start: Start<'_>, visitor: &Visitor) -> Result<Url, PeopleError> {
        let provider = self.provider(start.provider)?;
        self.count_address(visitor).await?;
        let metadata = provider.metadata().await?;
        let state = PlainKey::generate("tyo");
        let invitation = start.invitation.map(|token| KeyHash::of(token).as_bytes().to_vec());
        let sql =
            "insert into sign_in_attempts (hash, browser, provider, return_to, invitation, created_at) values ($1, $2, $3, $4, $5, $6)";
        let (hash, browser) = (state.hash(), KeyHash::of(start.browser));
        let bound = args![hash.as_bytes(), browser.as_bytes(), start.provider, start.return_to, invitation, self.0.clock.now()];
        self.0.db.execute(sql, bound).await?;
        let state = state.expose();
        let mut scopes = vec!["openid", "email", "profile"];
        scopes.extend(provider.config.scopes.iter().map(String::as_str).filter(|scope| !["openid", "email", "profile"].contains(scope)));
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.derived("verifier", state).as_bytes()));
        let mut url = metadata.authorization_endpoint;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &provider.config.client_id)
            .append_pair("redirect_uri", start.redirect)
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", state)
            .append_pair("nonce", &self.derived("nonce", state))
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// A secret of one sign-in, made from its state with our own key, so that none is kept.
    fn derived(&self, purpose: &str, state: &str) -> String {
        let signed = self.0.signer.sign(format!("oidc {purpose}:{state}").as_bytes());
        signed.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// Ends a sign-in at a provider. The attempt is used up first, so that no answer is taken twice.
    pub async fn finish(&self, returned: Returned<'_>, visitor: &Visitor) -> Result<Arrived, PeopleError> {
        let provider = self.provider(returned.provider)?;
        let sql =
            "delete from sign_in_attempts where hash = $1 and browser = $2 and provider = $3 returning return_to, invitation, created_at";
        let (state, browser) = (KeyHash::of(returned.state), KeyHash::of(returned.browser));
        let row = self.0.db.returning(sql, args![state.as_bytes(), browser.as_bytes(), returned.provider]).await?;
        let row = row.ok_or(PeopleError::AttemptInvalid)?;
        if row.get::<Timestamp>("created_at")?.plus(ATTEMPT_LIFE) <= self.0.clock.now() {
            return Err(PeopleError::AttemptInvalid);
        }
        let refused = |why: &str| PeopleError::ProviderRefused {
            provider: provider.label().to_owned(),
            why: why.chars().filter(|c| !c.is_control()).take(200).collect(),
        };
        let metadata = provider.metadata().await?;
        let is_other = returned.issuer.is_some_and(|issuer| issuer != metadata.issuer);
        if is_other || (metadata.names_itself && returned.issuer.is_none()) {
            return Err(refused("the answer came from another provider"));
        }
        if let Some(error) = returned.error {
            return Err(refused(if error == "access_denied" { "it was declined" } else { error }));
        }
        let code = returned.code.ok_or_else(|| refused("it sent no code"))?;
        let tokens = provider.tokens(&metadata, code, returned.redirect, &self.derived("verifier", returned.state)).await?;
        let token = tokens["id_token"].as_str().ok_or_else(|| provider.failed("it sent no ID token"))?;
        let claims = Self::proven(provider, token).await?;
        let nonce = self.derived("nonce", returned.state);
        let expected = Expected { issuer: &metadata.issuer, client: &provider.config.client_id, nonce: &nonce, now: self.0.clock.now() };
        claims::check(&claims, expected).map_err(|why| provider.failed(why))?;
        let groups = provider.config.groups_claim.as_deref().unwrap_or("groups");
        let mut userinfo = Value::Null;
        if let Some(endpoint) = metadata.userinfo_endpoint.filter(|_| claims["email"].is_null() || claims[groups].is_null())
            && let Some(access) = tokens["access_token"].as_str()
        {
            userinfo = provider.get(endpoint, Some(&SecretString::from(access))).await?;
            if userinfo["sub"] != claims["sub"] {
                return Err(provider.failed("it speaks of somebody else at its userinfo endpoint"));
            }
        }
        let person = Person::read(&claims, &userinfo, groups);
        let user = self.recognise(provider, &metadata.issuer, &person, row.get::<Option<Vec<u8>>>("invitation")?).await?;
        let opened = self.open_session(Holder::Person(user), &format!("provider:{}", provider.name()), visitor).await?;
        Ok(Arrived { opened, return_to: row.get("return_to")? })
    }

    /// The claims of a token, by the keys of its provider; one that none of them has signed is tried again with newer ones.
    async fn proven(provider: &Provider, token: &str) -> Result<Value, PeopleError> {
        let keys = provider.keys(None).await?;
        match jwt::claims(token, &keys) {
            Ok(claims) => return Ok(claims),
            Err(Unproven::Malformed) => return Err(provider.failed("its ID token is none, or is not signed with RS256 or ES256")),
            Err(Unproven::NoKey) => {}
        }
        let newer = provider.keys(Some(&keys)).await?;
        jwt::claims(token, &newer).map_err(|_| provider.failed("its ID token is not signed with its keys"))
    }

    /// The user that a person of a provider is. Somebody new is let in by a rule or an invitation, and else leaves no trace.
    async fn recognise(
        &self,
        provider: &Provider,
        issuer: &str,
        person: &Person,
        invitation: Option<Vec<u8>>,
    ) -> Result<UserId, PeopleError> {
        let given = self.given_projects(provider, person).await?;
        let sql = "select user_id from identities where issuer = $1 and subject = $2";
        let known = self.0.db.optional(sql, args![issuer, person.subject.as_str()]).await?;
        let user = match known {
            Some(row) => row.get("user_id")?,
            None => self.link(provider, issuer, person, !given.is_empty() || self.is_invited(person, invitation).await?).await?,
        };
        if self.0.accounts.user(user).await?.disabled_at.is_some() {
            return Err(PeopleError::Refused);
        }
        self.0.accounts.follow_provider(user, provider.name(), &given).await?;
        Ok(user)
    }

    async fn given_projects(&self, provider: &Provider, person: &Person) -> Result<Vec<(ProjectId, Role)>, PeopleError> {
        let mut given: Vec<(ProjectId, Role)> = Vec::new();
        for (name, role) in rules::given(&provider.config.rules, person) {
            match self.0.accounts.find_project(name).await {
                Ok(project) => match given.iter_mut().find(|(known, _)| *known == project.id) {
                    Some((_, known)) => *known = role.max(*known),
                    None => given.push((project.id, role)),
                },
                Err(AccountError::ProjectNotFound) => {
                    tracing::warn!(provider = provider.name(), project = name, "a rule names a project that there is not");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(given)
    }

    async fn is_invited(&self, person: &Person, invitation: Option<Vec<u8>>) -> Result<bool, PeopleError> {
        let Some(hash) = invitation else { return Ok(false) };
        let sql = "select email from invitations where hash = $1 and accepted_at is null and revoked_at is null and expires_at > $2";
        let Some(row) = self.0.db.optional(sql, args![hash, self.0.clock.now()]).await? else { return Ok(false) };
        let wanted: Option<String> = row.get("email")?;
        Ok(wanted.is_none_or(|wanted| person.email.as_ref().is_some_and(|given| given.eq_ignore_ascii_case(&wanted))))
    }

    /// Ties somebody whom a provider names for the first time to the account with their verified address, or to a new one.
    async fn link(&self, provider: &Provider, issuer: &str, person: &Person, may_enter: bool) -> Result<UserId, PeopleError> {
        let Some(email) = person.email.as_deref() else {
            return Err(provider.failed("it says no e-mail address; let it give the scope `email`"));
        };
        let now = self.0.clock.now();
        let account = match self.0.accounts.user_by_email(email).await {
            Ok(user) => Some(user),
            Err(AccountError::UserNotFound) => None,
            Err(error) => return Err(error.into()),
        };
        let mut tx = self.0.db.begin().await?;
        let user = match account {
            Some(_) if !person.is_email_verified => return Err(PeopleError::AlreadyHere),
            Some(user) => {
                // Whoever made the account before may have claimed an address that was not theirs: what they could still get in with goes.
                let sql = "select user_id from identities where user_id = $1 limit 1";
                if tx.optional(sql, args![user]).await?.is_none() {
                    let sql = "update users set password = null, totp = null, totp_confirmed_at = null, totp_used = null where id = $1";
                    tx.execute(sql, args![user]).await?;
                    for sql in ["delete from recovery_codes where user_id = $1", "delete from sessions where user_id = $1"] {
                        tx.execute(sql, args![user]).await?;
                    }
                }
                user
            }
            None if !may_enter => return Err(PeopleError::NotAMember(email.to_owned())),
            None => insert_user(&mut tx, email, person.name.clone().map(|name| name.chars().take(200).collect()), now).await?.id,
        };
        let sql = "insert into identities (issuer, subject, user_id, created_at) values ($1, $2, $3, $4)";
        tx.execute(sql, args![issuer, person.subject.as_str(), user, now]).await?;
        tx.commit().await?;
        Ok(user)
    }
}
