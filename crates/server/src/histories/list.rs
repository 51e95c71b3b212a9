//! Lists of rows, newest first, with a cursor where there are more.

use ::workflows::{Artifact, Family, Query, Revision, Variant, WorkflowError};
use kernel::{ArtifactId, RevisionId, Scope, VariantId};
use store::PageSize;
use uuid::Uuid;

use super::{FilterBody, RefBody, WindowingBody};
use crate::App;
use crate::edge::{ApiError, ApiResult};

const DEFAULT_PAGE: i64 = 100;
const MAX_PAGE: i64 = 500;
/// Each reference is a query of its own.
const MAX_REFS: usize = 100;

/// What a caller asks for. References of a level are alternatives; levels narrow each other.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) filter: FilterBody,
    pub(crate) artifact_refs: Vec<RefBody>,
    pub(crate) variant_refs: Vec<RefBody>,
    pub(crate) revision_refs: Vec<RefBody>,
    pub(crate) include_archived: bool,
    pub(crate) windowing: WindowingBody,
}

impl Ask {
    fn size(&self) -> PageSize {
        PageSize::within(self.windowing.limit, DEFAULT_PAGE, MAX_PAGE)
    }

    fn query(&self, artifact: Option<ArtifactId>, variant: Option<VariantId>) -> Query {
        Query {
            text: self.filter.name.clone(),
            slug: self.filter.slug.clone(),
            artifact,
            variant,
            include_archived: self.include_archived,
            limit: Some(self.size().rows()),
            next: self.windowing.next,
        }
    }

    /// Whether a row that was found by its name is asked for too.
    fn takes(&self, row: &impl Listed) -> bool {
        let words = |text: &str| {
            let text = text.to_lowercase();
            row.slug().to_lowercase().contains(&text) || row.name().is_some_and(|name| name.to_lowercase().contains(&text))
        };
        (self.include_archived || !row.is_archived())
            && self.filter.slug.as_deref().is_none_or(|slug| slug == row.slug())
            && self.filter.name.as_deref().is_none_or(words)
            && self.windowing.next.is_none_or(|next| row.id() < next)
    }

    fn page<T: Listed>(&self, mut rows: Vec<T>) -> Page<T> {
        rows.sort_by_key(|row| std::cmp::Reverse(row.id()));
        rows.dedup_by_key(|row| row.id());
        let next = self.size().cut(&mut rows, Listed::id);
        Page { rows, next }
    }
}

/// One page, and where the next one begins.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<Uuid>,
}

trait Listed {
    fn id(&self) -> Uuid;
    fn slug(&self) -> &str;
    fn name(&self) -> Option<&str>;
    fn is_archived(&self) -> bool;
}

macro_rules! listed {
    ($($kind:ty => $name:expr),*) => {$(
        impl Listed for $kind {
            fn id(&self) -> Uuid {
                self.id.uuid()
            }
            fn slug(&self) -> &str {
                &self.slug
            }
            fn name(&self) -> Option<&str> {
                let name: fn(&Self) -> Option<&str> = $name;
                name(self)
            }
            fn is_archived(&self) -> bool {
                self.archived_at.is_some()
            }
        }
    )*};
}

listed!(Artifact => |row| row.name.as_deref(), Variant => |row| row.name.as_deref(), Revision => |_| None);

pub(crate) async fn artifacts(app: &App, scope: Scope, family: Family, ask: Ask) -> ApiResult<Page<Artifact>> {
    ask.few()?;
    if ask.artifact_refs.is_empty() {
        return Ok(ask.page(app.workflows.query_artifacts(scope, family, &ask.query(None, None)).await?));
    }
    let mut rows = named_artifacts(app, scope, family, &ask.artifact_refs).await?;
    rows.retain(|row| ask.takes(row));
    Ok(ask.page(rows))
}

pub(crate) async fn variants(app: &App, scope: Scope, family: Family, ask: Ask) -> ApiResult<Page<Variant>> {
    ask.few()?;
    let roots = roots(app, scope, family, &ask.artifact_refs).await?;
    let mut rows = Vec::new();
    if ask.variant_refs.is_empty() {
        for root in roots {
            rows.extend(app.workflows.query_variants(scope, family, &ask.query(root, None)).await?);
        }
    } else {
        rows = named_variants(app, scope, family, &ask.variant_refs).await?;
        rows.retain(|row| ask.takes(row) && roots.iter().any(|root| root.is_none_or(|root| root == row.artifact)));
    }
    Ok(ask.page(rows))
}

pub(crate) async fn revisions(app: &App, scope: Scope, family: Family, ask: Ask) -> ApiResult<Page<Revision>> {
    ask.few()?;
    let roots = roots(app, scope, family, &ask.artifact_refs).await?;
    let lines: Vec<Option<VariantId>> = if ask.variant_refs.is_empty() {
        vec![None]
    } else {
        named_variants(app, scope, family, &ask.variant_refs).await?.into_iter().map(|variant| Some(variant.id)).collect()
    };
    let mut rows = Vec::new();
    let under = |row: &Revision| roots.iter().any(|root| root.is_none_or(|root| root == row.artifact));
    if !ask.revision_refs.is_empty() {
        rows = named_revisions(app, scope, family, &ask.revision_refs).await?;
        rows.retain(|row| ask.takes(row) && under(row) && lines.iter().any(|line| line.is_none_or(|line| line == row.variant)));
    } else if ask.variant_refs.is_empty() {
        for root in &roots {
            rows.extend(app.workflows.query_revisions(scope, family, &ask.query(*root, None)).await?);
        }
    } else {
        // A variant is under one artifact, so its rows are all or none of what is asked for.
        for line in lines {
            rows.extend(app.workflows.query_revisions(scope, family, &ask.query(None, line)).await?);
        }
        rows.retain(under);
    }
    Ok(ask.page(rows))
}

/// The revisions of a variant, from one version back, newest first; what is archived is part of the history.
pub(crate) async fn log(
    app: &App,
    scope: Scope,
    family: Family,
    (variant, from): (VariantId, Option<i64>),
    depth: Option<i64>,
) -> ApiResult<Vec<Revision>> {
    Ok(app.workflows.log(scope, family, variant, from, depth.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)).await?)
}

/// The artifacts to look under; nothing named means everywhere.
async fn roots(app: &App, scope: Scope, family: Family, refs: &[RefBody]) -> ApiResult<Vec<Option<ArtifactId>>> {
    if refs.is_empty() {
        return Ok(vec![None]);
    }
    Ok(named_artifacts(app, scope, family, refs).await?.into_iter().map(|artifact| Some(artifact.id)).collect())
}

/// A name that leads nowhere is no row, not an error.
fn absent<T>(found: Result<T, WorkflowError>) -> ApiResult<Option<T>> {
    match found {
        Ok(row) => Ok(Some(row)),
        Err(WorkflowError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn named_artifacts(app: &App, scope: Scope, family: Family, refs: &[RefBody]) -> ApiResult<Vec<Artifact>> {
    let mut rows = Vec::new();
    for reference in refs {
        rows.extend(absent(app.workflows.named(scope, family, reference.id, reference.slug.as_deref()).await)?);
    }
    Ok(rows)
}

async fn named_variants(app: &App, scope: Scope, family: Family, refs: &[RefBody]) -> ApiResult<Vec<Variant>> {
    let mut rows = Vec::new();
    for reference in refs {
        match (reference.id, &reference.slug) {
            (Some(id), slug) => {
                let found = absent(app.workflows.variant(scope, family, VariantId::from(id)).await)?;
                rows.extend(found.filter(|row| slug.as_ref().is_none_or(|slug| *slug == row.slug)));
            }
            (None, Some(slug)) => rows.extend(app.workflows.query_variants(scope, family, &by_slug(slug)).await?),
            (None, None) => return Err(unnamed()),
        }
    }
    Ok(rows)
}

async fn named_revisions(app: &App, scope: Scope, family: Family, refs: &[RefBody]) -> ApiResult<Vec<Revision>> {
    let mut rows = Vec::new();
    for reference in refs {
        match (reference.id, &reference.slug) {
            (Some(id), slug) => {
                let found = absent(app.workflows.revision(scope, family, RevisionId::from(id)).await)?;
                rows.extend(found.filter(|row| slug.as_ref().is_none_or(|slug| *slug == row.slug)));
            }
            (None, Some(slug)) => rows.extend(app.workflows.query_revisions(scope, family, &by_slug(slug)).await?),
            (None, None) => return Err(unnamed()),
        }
    }
    Ok(rows)
}

fn by_slug(slug: &str) -> Query {
    Query { slug: Some(slug.to_owned()), include_archived: true, ..Query::default() }
}

impl Ask {
    fn few(&self) -> ApiResult<()> {
        if self.artifact_refs.len() + self.variant_refs.len() + self.revision_refs.len() > MAX_REFS {
            return Err(ApiError::unprocessable(format!("A request holds at most {MAX_REFS} references.")));
        }
        Ok(())
    }
}

fn unnamed() -> ApiError {
    ApiError::bad_request("A reference in a list names a row by id or slug.")
}
