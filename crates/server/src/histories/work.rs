//! What the bodies of all families come to, and what is done with it.

use ::workflows::embed::ErrorPolicy;
use ::workflows::{Committed, Family, NewRevision, Revision, Words};
use kernel::{ArtifactId, Scope, VariantId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{DeltaBody, EmbedOptions, Page, ResolutionInfo, RetrievalInfo, change, find, in_place, log_start, logged};
use crate::App;
use crate::edge::{ApiError, ApiResult};

/// A new revision of a variant.
#[derive(Debug)]
pub(crate) struct CommitRequest {
    pub(crate) variant: VariantId,
    /// What the variant belongs to, if the caller says so.
    pub(crate) artifact: Option<ArtifactId>,
    pub(crate) slug: Option<String>,
    pub(crate) words: Words,
    pub(crate) data: Option<Value>,
    pub(crate) delta: Option<DeltaBody>,
    pub(crate) base: Option<Uuid>,
    pub(crate) message: Option<String>,
}

pub(crate) async fn commit(app: &App, scope: Scope, family: Family, request: CommitRequest) -> ApiResult<Committed> {
    let CommitRequest { variant, artifact, slug, words, data, delta, base, message } = request;
    let change = change(family, data, delta)?;
    if let Some(artifact) = artifact
        && app.workflows.variant(scope, family, variant).await?.artifact != artifact
    {
        let name = family.name();
        return Err(ApiError::bad_request(format!("The variant is not one of the {name} that `{name}_id` names.")));
    }
    // Only who commits workflows knows the answer `no_change`.
    let skips_equal = family == Family::Workflow;
    let new = NewRevision { base, message, slug, words, skips_equal, ..NewRevision::of(variant, change) };
    Ok(app.workflows.commit(scope, family, new).await?)
}

/// Whose history to read; the deepest of the three counts.
#[derive(Debug, Default)]
pub(crate) struct LogRequest {
    pub(crate) artifact: Option<Uuid>,
    pub(crate) variant: Option<Uuid>,
    pub(crate) revision: Option<Uuid>,
    pub(crate) depth: Option<i64>,
}

pub(crate) async fn log(app: &App, scope: Scope, family: Family, request: LogRequest) -> ApiResult<Page<Revision>> {
    let LogRequest { artifact, variant, revision, depth } = request;
    let start = log_start(app, scope, family, [artifact, variant, revision]).await?;
    logged(app, scope, family, start, depth).await
}

/// A revision that references led to.
#[derive(Debug)]
pub(crate) struct FoundRevision {
    pub(crate) revision: Revision,
    pub(crate) resolution_info: Option<ResolutionInfo>,
    pub(crate) retrieval_info: RetrievalInfo,
}

/// Which revision to read.
#[derive(Debug)]
pub(crate) struct RetrieveRequest {
    pub(crate) key: Option<String>,
    pub(crate) resolve: bool,
    pub(crate) references: Map<String, Value>,
}

pub(crate) async fn retrieve(app: &App, scope: Scope, family: Family, request: RetrieveRequest) -> ApiResult<Option<FoundRevision>> {
    let Some(found) = find(app, scope, family, &request.references, request.key.as_deref()).await? else { return Ok(None) };
    let retrieval_info = RetrievalInfo::of(family, &found);
    let mut revision = found.revision;
    let mut resolution_info = request.resolve.then(ResolutionInfo::default);
    if let Some(data) = revision.data.take_if(|_| request.resolve) {
        let (data, info) = in_place(app, scope, data, &EmbedOptions::default()).await?;
        (revision.data, resolution_info) = (Some(data), Some(info));
    }
    Ok(Some(FoundRevision { revision, resolution_info, retrieval_info }))
}

/// A revision whose embeds shall be put in place: one that is given, or one that references name.
#[derive(Debug)]
pub(crate) struct ResolveRequest {
    pub(crate) given: Option<Map<String, Value>>,
    pub(crate) references: Map<String, Value>,
    pub(crate) key: Option<String>,
    pub(crate) max_depth: Option<usize>,
    pub(crate) max_embeds: Option<usize>,
    pub(crate) error_policy: Option<ErrorPolicy>,
}

/// A revision with its embeds in place.
#[derive(Debug)]
pub(crate) struct ResolvedRevision {
    pub(crate) revision: Value,
    pub(crate) resolution_info: ResolutionInfo,
    pub(crate) retrieval_info: Option<RetrievalInfo>,
}

/// `B` is the family's body of a revision.
pub(crate) async fn resolve<B: From<Revision> + Serialize>(
    app: &App,
    scope: Scope,
    family: Family,
    request: ResolveRequest,
) -> ApiResult<Option<ResolvedRevision>> {
    let (mut revision, retrieval_info) = if let Some(given) = request.given {
        (Value::Object(given), None)
    } else {
        let Some(found) = find(app, scope, family, &request.references, request.key.as_deref()).await? else { return Ok(None) };
        let info = RetrievalInfo::of(family, &found);
        (json!(B::from(found.revision)), Some(info))
    };
    let data = match revision.get_mut("data").map(Value::take) {
        Some(data) => data,
        None if retrieval_info.is_some() => {
            return Ok(Some(ResolvedRevision { revision, resolution_info: ResolutionInfo::default(), retrieval_info }));
        }
        None => return Err(ApiError::bad_request("The revision has no data, so there is nothing to resolve.")),
    };
    let options = EmbedOptions { max_depth: request.max_depth, max_embeds: request.max_embeds, error_policy: request.error_policy };
    let (data, resolution_info) = in_place(app, scope, data, &options).await?;
    revision["data"] = data;
    Ok(Some(ResolvedRevision { revision, resolution_info, retrieval_info }))
}
