//! Providers that send all events of a deployment to one address: that they do, what they sign with, and that both sides know the same
//! triggers.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel::seal::{SealedColumn, Sealer};
use kernel::{Clock, ConnectionId, ProjectId, Timestamp};
use serde_json::Value;
use store::{Db, Row, StoreError, args};
use uuid::Uuid;

use crate::model::Subscription;
use crate::port::{EventSource, RemoteTrigger, Signed};
use crate::provider::{WatchedEvent, explained};
use crate::store::{self as rows, subscription_columns};
use crate::subscriptions::fires;
use crate::{RowKind, TriggerError, Triggers};

/// How long it is taken for granted that events are sent here.
const SURE: Duration = Duration::from_mins(10);
/// How long secrets are remembered; another node may have changed them.
const REMEMBERED: Duration = Duration::from_secs(30);
/// How soon after a signature that does not fit they are read again, and the provider is asked again.
const READ_AGAIN: Duration = Duration::from_secs(2);
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How long the secret before the last one is still taken: requests signed with it may be on their way.
const OVERLAP: Duration = Duration::from_hours(24);
/// How long one node has to make sure of a hub, and how long another waits for it.
const LEASE: Duration = Duration::from_mins(2);
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// A secret that the provider does not show, and that fits nothing, is changed when it is at least this old.
const SETTLED: Duration = Duration::from_hours(1);
/// A trigger that changed lately may belong to a request that is still under way.
const YOUNG: Duration = Duration::from_mins(15);

/// What a process remembers of one hub.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<State>);

#[derive(Default)]
struct State {
    ensured: Option<Instant>,
    asked: Option<Instant>,
    secrets: Option<ReadSecrets>,
}

/// Secrets as they were read.
#[derive(Clone, Debug)]
struct ReadSecrets {
    at: Instant,
    /// When the one before the newest ends.
    until: Option<Timestamp>,
    secrets: Vec<String>,
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Remembered")
    }
}

impl Remembered {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What bringing both sides together came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TidiedTriggers {
    /// Triggers that nobody here knew, or wanted.
    pub removed: usize,
    /// Subscriptions whose triggers were gone, and are there again.
    pub restored: usize,
    /// Subscriptions whose triggers do not work any more.
    pub invalidated: usize,
}

impl Triggers {
    /// The address that a hub sends to.
    pub fn hub_address(&self, provider: &str) -> String {
        let own = || format!("{}/triggers/{provider}/events", self.0.public_url.trim_end_matches('/'));
        self.0.hub_url.clone().unwrap_or_else(own)
    }

    /// Makes sure that a provider sends its events here; what had to be put right, if anything.
    #[kernel::boxed]
    pub async fn ensure_hub(&self, provider: &str) -> Result<Option<String>, TriggerError> {
        let Some(source) = self.0.sources.get(provider).filter(|source| source.hub().is_some()).cloned() else { return Ok(None) };
        if self.0.hub.with(|state| state.ensured.is_some_and(|at| at.elapsed() < SURE)) {
            return Ok(None);
        }
        Box::pin(self.ensure_now(provider, &*source, false)).await
    }

    /// Only one node at a time does this: two that change a secret would know different ones.
    async fn ensure_now(&self, provider: &str, source: &dyn EventSource, doubts: bool) -> Result<Option<String>, TriggerError> {
        let Some(hub) = source.hub() else { return Ok(None) };
        self.alone(provider, async {
            let known = self.kept(provider).await?;
            let is_settled = known.first().is_some_and(|newest| newest.updated_at.plus(SETTLED) < self.0.clock.now());
            let knows_secret = !(known.is_empty() || doubts && is_settled);
            let address = self.hub_address(provider);
            let Signed { secret, repaired } = hub.ensure(&address, knows_secret).await.map_err(|error| explained(provider, error))?;
            if let Some(secret) = secret {
                self.keep_secret(provider, &secret).await?;
            }
            if let Some(what) = &repaired {
                tracing::info!(provider, "the webhook subscription was put right: {what}");
            }
            self.0.hub.with(|state| state.ensured = Some(Instant::now()));
            Ok(repaired)
        })
        .await
    }

    /// Has a provider sign with another secret; the old one is taken for another day.
    #[kernel::boxed]
    pub async fn rotate_hub(&self, provider: &str) -> Result<(), TriggerError> {
        let source = self.0.sources.get(provider).cloned().ok_or(TriggerError::NotFound(RowKind::Provider))?;
        Box::pin(self.ensure_now(provider, &*source, false)).await?;
        let hub = source.hub().ok_or(TriggerError::NotFound(RowKind::Provider))?;
        self.alone(provider, async {
            let secret = hub.rotate().await.map_err(|error| explained(provider, error))?;
            self.keep_secret(provider, &secret).await
        })
        .await
    }

    /// Does work that no other node, and nobody else in this one, does at the same time.
    async fn alone<T>(&self, provider: &str, work: impl Future<Output = Result<T, TriggerError>>) -> Result<T, TriggerError> {
        let _turn = self.0.hub_turn.lock().await;
        let name = format!("{provider}.webhook");
        let started = Instant::now();
        let sql = "insert into deployment_leases (name, until) values ($1, $3) \
                   on conflict (name) do update set until = $3 where deployment_leases.until < $2";
        let until = loop {
            let now = Clock::system().now();
            let until = now.plus(LEASE);
            if self.0.db.execute(sql, args![name.as_str(), now, until]).await? == 1 {
                break until;
            }
            if started.elapsed() > PATIENCE {
                return Err(TriggerError::Upstream(format!("another node is busy with the webhooks of {provider}; try again")));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        };
        let done = work.await;
        let sql = "delete from deployment_leases where name = $1 and until = $2";
        if let Err(error) = self.0.db.execute(sql, args![name.as_str(), until]).await {
            tracing::warn!(provider, %error, "a lease could not be given back; it ends by itself");
        }
        done
    }

    /// The secrets that a provider may sign with now, as far as it told them: the newest, and the one before.
    pub(crate) async fn hub_secrets(&self, provider: &str) -> Result<Vec<String>, TriggerError> {
        let now = self.0.clock.now();
        let holds = |read: &ReadSecrets| read.at.elapsed() < REMEMBERED && read.until.is_none_or(|until| now < until);
        let remembered = self.0.hub.with(|state| state.secrets.clone().filter(holds));
        match remembered {
            Some(read) => Ok(read.secrets),
            None => self.read_secrets(provider).await,
        }
    }

    /// The secrets again, after a signature did not fit: another node, or the operator, may have changed them. The provider is asked too, in
    /// the background and rarely, because anybody can send such a request.
    pub(crate) async fn hub_secrets_again(&self, provider: &'static str) -> Result<Option<Vec<String>>, TriggerError> {
        let (is_fresh, may_ask) = self.0.hub.with(|state| {
            let is_fresh = state.secrets.as_ref().is_some_and(|read| read.at.elapsed() < READ_AGAIN);
            let may_ask = state.asked.is_none_or(|at| at.elapsed() >= ASK_AGAIN);
            if may_ask {
                state.asked = Some(Instant::now());
            }
            (is_fresh, may_ask)
        });
        if may_ask && let Some(source) = self.0.sources.get(provider).cloned() {
            let this = self.clone();
            self.0.tasks.spawn(async move {
                if let Err(error) = this.ensure_now(provider, &*source, true).await {
                    tracing::info!(provider, %error, "the provider could not be asked what it signs with");
                }
            });
        }
        if is_fresh { Ok(None) } else { self.read_secrets(provider).await.map(Some) }
    }

    async fn read_secrets(&self, provider: &str) -> Result<Vec<String>, TriggerError> {
        let kept = self.kept(provider).await?;
        let until = kept.iter().find(|kept| !kept.is_newest).map(|kept| kept.updated_at.plus(OVERLAP));
        let secrets: Vec<String> = kept.into_iter().map(|kept| kept.secret).collect();
        self.0.hub.with(|state| state.secrets = Some(ReadSecrets { at: Instant::now(), until, secrets: secrets.clone() }));
        Ok(secrets)
    }

    /// The secrets that are in force, the newest first.
    async fn kept(&self, provider: &str) -> Result<Vec<Kept>, TriggerError> {
        let sql = "select name, id, secret, updated_at from deployment_secrets where name = $1 or name = $2";
        let (newest, before) = (newest(provider), before(provider));
        let mut kept = Vec::new();
        for row in self.0.db.all(sql, args![newest.as_str(), before.as_str()]).await? {
            let Sealed { name, id, bytes, updated_at } = Sealed::read(&row)?;
            let is_newest = name == newest;
            if is_newest || updated_at.plus(OVERLAP) > self.0.clock.now() {
                let secret = String::from_utf8_lossy(&self.0.sealer.open(&bytes, place(id))?).into_owned();
                kept.push(Kept { secret, is_newest, updated_at });
            }
        }
        kept.sort_by_key(|kept| !kept.is_newest);
        Ok(kept)
    }

    /// Keeps the newest secret, and the one before for a while.
    async fn keep_secret(&self, provider: &str, secret: &str) -> Result<(), TriggerError> {
        if self.kept(provider).await?.first().is_some_and(|newest| newest.is_newest && newest.secret == secret) {
            return Ok(());
        }
        let (id, now) = (Uuid::now_v7(), self.0.clock.now());
        let sealed = self.0.sealer.seal(secret.as_bytes(), place(id));
        let mut tx = self.0.db.begin().await?;
        tx.execute("delete from deployment_secrets where name = $1", args![before(provider)]).await?;
        let sql = "update deployment_secrets set name = $2, updated_at = $3 where name = $1";
        tx.execute(sql, args![newest(provider), before(provider), now]).await?;
        let sql = "insert into deployment_secrets (name, id, secret, updated_at) values ($1, $2, $3, $4)";
        tx.execute(sql, args![newest(provider), id, sealed, now]).await?;
        tx.commit().await?;
        self.0.hub.with(|state| state.secrets = None);
        Ok(())
    }

    /// The provider says that it switched a trigger off. It may have said so long ago, so it is asked again.
    pub(crate) async fn trigger_disabled(&self, provider: &str, trigger: &str, why: &str) -> Result<(), TriggerError> {
        if let Some(hub) = self.0.sources.get(provider).and_then(|source| source.hub())
            && let Ok(Some(RemoteTrigger { is_disabled: false, .. })) = hub.instance(trigger).await
        {
            return Ok(());
        }
        self.give_up(provider, trigger, why).await
    }

    /// Marks the subscriptions of a trigger that does not work any more.
    async fn give_up(&self, provider: &str, trigger: &str, why: &str) -> Result<(), TriggerError> {
        let sql = concat!(
            "update trigger_subscriptions set is_valid = false, reason = $3, updated_at = $4 \
             where provider = $1 and trigger_id = $2 and deleted_at is null and is_valid returning ",
            subscription_columns!()
        );
        let rows = self.0.db.returning_all(sql, args![provider, trigger, why, self.0.clock.now()]).await?;
        Ok(self.tell_disabled(&rows, why).await?)
    }

    /// Removes the triggers of a connection that is of no use any more; what stays is found by `tidy`.
    pub(crate) async fn remove_remote(&self, project: ProjectId, connection: ConnectionId) -> Result<(), StoreError> {
        self.remove_later(rows::of_connection(&self.0.db, project, connection).await?);
        Ok(())
    }

    /// The subscriptions of a project that have triggers at hubs.
    pub(crate) async fn at_hubs(&self, project: ProjectId) -> Result<Vec<Subscription>, TriggerError> {
        let mut all = Vec::new();
        for provider in self.0.sources.iter().filter(|(_, source)| source.hub().is_some()).map(|(provider, _)| *provider) {
            all.extend(rows::with_trigger(&self.0.db, project, provider).await?);
        }
        Ok(all)
    }

    pub(crate) fn remove_later(&self, rows: Vec<Subscription>) {
        for row in rows {
            let Some(source) = self.0.sources.get(row.provider.as_str()).filter(|source| source.hub().is_some()).cloned() else { continue };
            let Some(trigger) = row.trigger_id else { continue };
            self.0.tasks.spawn(async move {
                let Some(hub) = source.hub() else { return };
                if let Err(error) = hub.remove(&trigger).await {
                    tracing::info!(?error, "a trigger could not be removed at its provider yet");
                }
            });
        }
    }

    /// Makes the trigger of a subscription anew; whether that worked is in its row.
    async fn restore(&self, row: &Subscription) -> Result<bool, TriggerError> {
        let registered = match self.watched_by(row).await {
            Ok(Some(watched)) => self.register(&watched, row, "").await,
            Ok(None) => return Ok(false),
            Err(error) => Err(error),
        };
        let (trigger, why) = match registered {
            Ok(registered) => (registered.remote, None),
            Err(error) => (row.trigger_id.clone(), Some(error.to_string())),
        };
        let is_restored = why.is_none();
        let sql = "update trigger_subscriptions set trigger_id = $3, is_valid = $4, reason = $5, updated_at = $6 \
                   where project_id = $1 and id = $2 and deleted_at is null";
        self.0.db.execute(sql, args![row.project, row.id, trigger, is_restored, why, self.0.clock.now()]).await?;
        Ok(is_restored)
    }

    /// Removes what a registration may have made before its answer was lost.
    pub(crate) async fn undo_registration(&self, watched: &WatchedEvent) {
        let Some(hub) = watched.source.hub() else { return };
        let provider = watched.connection.provider.as_str();
        let Ok(Some(account)) = self.0.connections.account(watched.connection.project, watched.connection.id).await else { return };
        let config = Value::Object(watched.config.clone());
        let Ok(listed) = hub.instances(vec![account]).await else { return };
        for trigger in listed.iter().filter(|trigger| trigger.event == watched.event.key && trigger.config == config) {
            let known = rows::subscriptions_by_trigger(&self.0.db, provider, &trigger.id).await;
            if known.is_ok_and(|known| known.is_empty())
                && let Err(error) = hub.remove(&trigger.id).await
            {
                tracing::info!(?error, "a trigger whose making failed could not be removed yet");
            }
        }
    }

    /// Brings a project's subscriptions and its triggers at the provider together: what nobody here wants is removed there, what is gone there
    /// is made again, and what does not work there is not valid here.
    #[kernel::boxed]
    pub async fn tidy(&self, provider: &str, project: ProjectId) -> Result<TidiedTriggers, TriggerError> {
        let Some(source) = self.0.sources.get(provider).cloned() else { return Ok(TidiedTriggers::default()) };
        let Some(hub) = source.hub() else { return Ok(TidiedTriggers::default()) };
        let accounts = self.0.connections.accounts(provider, project).await?;
        if accounts.is_empty() {
            return Ok(TidiedTriggers::default());
        }
        let listed = hub.instances(accounts).await.map_err(|error| explained(provider, error))?;
        let mut known = rows::with_trigger(&self.0.db, project, provider).await?;
        let mut tidied = TidiedTriggers::default();
        let young = self.0.clock.now().minus(YOUNG);
        for trigger in &listed {
            let is_wanted = known.iter().any(|row| row.trigger_id.as_ref() == Some(&trigger.id) && fires(row));
            if is_wanted || trigger.updated_at.is_none_or(|at| at > young) {
                continue;
            }
            match hub.remove(&trigger.id).await {
                Ok(()) => tidied.removed += 1,
                Err(error) => tracing::info!(provider, ?error, "a trigger that nobody wants could not be removed"),
            }
        }
        known.retain(|row| fires(row) && row.life.updated_at < young);
        for row in known {
            let Some(trigger) = row.trigger_id.as_deref() else { continue };
            if listed.iter().any(|listed| listed.id == trigger && !listed.is_disabled) {
                continue;
            }
            // A list that changed while it was read may leave one out.
            match hub.instance(trigger).await.map_err(|error| explained(provider, error))? {
                Some(found) if !found.is_disabled => {}
                Some(_) => {
                    self.give_up(provider, trigger, "The provider switched this trigger off. Refresh the subscription.").await?;
                    tidied.invalidated += 1;
                }
                None if self.restore(&row).await? => tidied.restored += 1,
                None => tidied.invalidated += 1,
            }
        }
        Ok(tidied)
    }
}

fn newest(provider: &str) -> String {
    format!("{provider}.webhook")
}

fn before(provider: &str) -> String {
    format!("{provider}.webhook.before")
}

fn place(id: Uuid) -> SealedColumn<'static> {
    SealedColumn { table: "deployment_secrets", column: "secret", row: id }
}

/// A secret that a hub signs with.
struct Kept {
    secret: String,
    is_newest: bool,
    updated_at: Timestamp,
}

struct Sealed {
    name: String,
    id: Uuid,
    bytes: Vec<u8>,
    updated_at: Timestamp,
}

impl Sealed {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { name: row.get("name")?, id: row.get("id")?, bytes: row.get("secret")?, updated_at: row.get("updated_at")? })
    }
}

/// Seals the secrets of hubs with the current key.
pub(crate) async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, TriggerError> {
    let mut resealed = 0;
    for row in db.all("select name, id, secret, updated_at from deployment_secrets", args![]).await? {
        let Sealed { name, id, bytes: old, .. } = Sealed::read(&row)?;
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            let sql = "update deployment_secrets set secret = $2 where name = $1 and secret = $3";
            resealed += db.execute(sql, args![name, new, old]).await?;
        }
    }
    Ok(resealed)
}
