//! Lists of rows, newest first, with a cursor where there are more.

use ::workflows::{Artifact, Family, Query, Revision, Simple, Variant, WorkflowError};
use kernel::json::size;
use kernel::{Scope, Timestamp, VariantId};
use serde_json::{Map, Value};
use store::PageSize;
use uuid::Uuid;

use super::{NextBody, Order, RefBody, WindowingBody};
use crate::App;
use crate::edge::{ApiError, ApiResult};

const DEFAULT_PAGE: i64 = 100;
const MAX_PAGE: i64 = 500;
/// Where a page ends that is put together from several.
const PAGE_BYTES: usize = 4 << 20;
/// Each alternative is a query of its own.
const MAX_ALTERNATIVES: usize = 100;

/// What rows say.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// Any of these, if there are some.
    pub(crate) slugs: Option<Vec<String>>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) flags: Option<Map<String, Value>>,
    pub(crate) tags: Option<Value>,
}

/// What a caller asks for. References of a level are alternatives; levels narrow each other.
#[derive(Debug, Default)]
pub(crate) struct HistoryQuery {
    pub(crate) filter: Filter,
    pub(crate) message: Option<String>,
    pub(crate) authors: Vec<Uuid>,
    pub(crate) dates: Vec<String>,
    pub(crate) versions: Vec<i64>,
    pub(crate) artifact_refs: Vec<RefBody>,
    pub(crate) variant_refs: Vec<RefBody>,
    pub(crate) revision_refs: Vec<RefBody>,
    pub(crate) include_archived: Option<bool>,
    pub(crate) windowing: WindowingBody,
}

impl HistoryQuery {
    fn size(&self) -> PageSize {
        PageSize::within(self.windowing.limit, DEFAULT_PAGE, MAX_PAGE)
    }

    fn is_ascending(&self) -> bool {
        self.windowing.order == Some(Order::Ascending)
    }

    fn gathering<T: Listed>(&self) -> Gathering<T> {
        Gathering { size: self.size(), ascending: self.is_ascending(), rows: Vec::new(), last: None }
    }

    /// The queries whose rows are asked for, before what the rows belong to: one for each row that is named, or one for all.
    fn alternatives(&self, own: &[RefBody]) -> ApiResult<Vec<Query>> {
        let moment = |name: &str, text: &String| {
            let wrong = || ApiError::unprocessable(format!("`{name}`: `{text}` is not a time; write it as 2026-01-31T12:00:00Z."));
            Timestamp::read_iso(text).ok_or_else(wrong)
        };
        let first = Query {
            name: self.filter.name.clone(),
            description: self.filter.description.clone(),
            tags: self.filter.tags.clone(),
            flags: self.filter.flags.clone(),
            message: self.message.clone(),
            include_archived: self.include_archived.unwrap_or(false),
            limit: self.windowing.limit,
            next: self.windowing.next,
            ascending: self.is_ascending(),
            newest: self.windowing.newest.as_ref().map(|text| moment("newest", text)).transpose()?,
            oldest: self.windowing.oldest.as_ref().map(|text| moment("oldest", text)).transpose()?,
            ..Query::default()
        };
        let dates = self.dates.iter().map(|text| moment("date", text)).collect::<ApiResult<Vec<_>>>()?;
        let mut queries = each(&[first], &self.names(own)?, |query, (id, slug)| Query { id: *id, slug: slug.clone(), ..query })?;
        if !self.authors.is_empty() {
            queries = each(&queries, &self.authors, |query, author| Query { author: Some(*author), ..query })?;
        }
        if !dates.is_empty() {
            queries = each(&queries, &dates, |query, date| Query { date: Some(*date), ..query })?;
        }
        if !self.versions.is_empty() {
            queries = each(&queries, &self.versions, |query, version| Query { version: Some(*version), ..query })?;
        }
        Ok(queries)
    }

    /// The ids and slugs of the rows that are asked for by name. A row that a reference and a slug name must be named by both.
    fn names(&self, own: &[RefBody]) -> ApiResult<Vec<(Option<Uuid>, Option<String>)>> {
        if own.iter().any(|own| own.id.is_none() && own.slug.is_none()) {
            return Err(ApiError::bad_request("A reference in a list names a row by id or slug."));
        }
        let mut names: Vec<_> = own.iter().map(|own| (own.id, own.slug.clone())).collect();
        if own.is_empty() {
            names.push((None, None));
        }
        let Some(slugs) = self.filter.slugs.as_ref().filter(|slugs| !slugs.is_empty()) else { return Ok(names) };
        if names.len() * slugs.len() > MAX_ALTERNATIVES {
            return Err(too_many());
        }
        let with = |(id, own): &(Option<Uuid>, Option<String>), slug: &String| {
            own.as_ref().is_none_or(|own| own == slug).then(|| (*id, Some(slug.clone())))
        };
        Ok(names.iter().flat_map(|name| slugs.iter().filter_map(|slug| with(name, slug))).collect())
    }
}

fn too_many() -> ApiError {
    ApiError::unprocessable(format!("A request holds at most {MAX_ALTERNATIVES} references and alternatives."))
}

/// Every query with every choice.
fn each<T>(queries: &[Query], choices: &[T], with: impl Fn(Query, &T) -> Query) -> ApiResult<Vec<Query>> {
    if queries.len() * choices.len() > MAX_ALTERNATIVES {
        return Err(too_many());
    }
    Ok(queries.iter().flat_map(|query| choices.iter().map(|choice| with(query.clone(), choice))).collect())
}

/// One page, and where the next one begins.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<Uuid>,
}

impl<T> Page<T> {
    /// The bodies of the rows, and what leads to the next page.
    pub(crate) fn bodies<B: From<T>>(self) -> (Vec<B>, Option<NextBody>) {
        (self.rows.into_iter().map(Into::into).collect(), self.next.map(|next| NextBody { next }))
    }
}

/// One page out of the pages of several lists, never much more than that in memory.
struct Gathering<T> {
    size: PageSize,
    ascending: bool,
    rows: Vec<T>,
    /// The row after which some list has more: nothing beyond it belongs to this page.
    last: Option<Uuid>,
}

impl<T: Listed> Gathering<T> {
    fn add(&mut self, page: store::Page<T>) {
        let place = |id: Uuid| if self.ascending { id.as_u128() } else { u128::MAX - id.as_u128() };
        let ends = self.last.into_iter().chain(page.cursor(Listed::id));
        self.last = ends.min_by_key(|id| place(*id));
        self.rows.extend(page.rows);
        self.rows.sort_by_key(|row| place(row.id()));
        self.rows.dedup_by_key(|row| row.id());
        self.rows.retain(|row| self.last.is_none_or(|last| place(row.id()) <= place(last)));
        let mut before = 0;
        let fitting = self.rows.iter().take_while(|row| {
            let fits = before < PAGE_BYTES;
            before += row.bytes();
            fits
        });
        let fitting = fitting.count();
        let more = fitting < self.rows.len();
        self.rows.truncate(fitting);
        let cut = self.size.cut(std::mem::take(&mut self.rows));
        if more || cut.more {
            self.last = cut.rows.last().map(Listed::id);
        }
        self.rows = cut.rows;
    }

    fn page(self) -> Page<T> {
        Page { next: self.last.and(self.rows.last().map(Listed::id)), rows: self.rows }
    }
}

trait Listed {
    fn id(&self) -> Uuid;
    /// About how large it is.
    fn bytes(&self) -> usize;
}

impl Listed for Artifact {
    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn bytes(&self) -> usize {
        sizes([&self.tags, &self.meta]) + self.description.as_ref().map_or(0, String::len)
    }
}

impl Listed for Variant {
    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn bytes(&self) -> usize {
        sizes([&self.tags, &self.meta]) + self.description.as_ref().map_or(0, String::len)
    }
}

impl Listed for Revision {
    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn bytes(&self) -> usize {
        sizes([&self.data, &self.tags, &self.meta]) + self.description.as_ref().map_or(0, String::len)
    }
}

impl Listed for Simple {
    fn id(&self) -> Uuid {
        self.artifact.id()
    }

    fn bytes(&self) -> usize {
        self.artifact.bytes() + self.revision.as_ref().map_or(0, Revision::bytes)
    }
}

fn sizes<const N: usize>(values: [&Option<Value>; N]) -> usize {
    values.into_iter().flatten().map(|value| size(value, PAGE_BYTES)).sum()
}

pub(crate) async fn artifacts(app: &App, scope: Scope, family: Family, ask: HistoryQuery) -> ApiResult<Page<Artifact>> {
    let mut found = ask.gathering();
    for query in ask.alternatives(&ask.artifact_refs)? {
        found.add(app.workflows.query_artifacts(scope, family, &query).await?);
    }
    Ok(found.page())
}

/// Artifacts with their newest data.
pub(crate) async fn simples(app: &App, scope: Scope, family: Family, ask: HistoryQuery) -> ApiResult<Page<Simple>> {
    let mut found = ask.gathering();
    for query in ask.alternatives(&ask.artifact_refs)? {
        found.add(app.workflows.query_simple(scope, family, &query).await?);
    }
    Ok(found.page())
}

pub(crate) async fn variants(app: &App, scope: Scope, family: Family, ask: HistoryQuery) -> ApiResult<Page<Variant>> {
    let queries = under_artifacts(app, scope, family, &ask, ask.alternatives(&ask.variant_refs)?).await?;
    let mut found = ask.gathering();
    for query in queries {
        found.add(app.workflows.query_variants(scope, family, &query).await?);
    }
    Ok(found.page())
}

pub(crate) async fn revisions(app: &App, scope: Scope, family: Family, ask: HistoryQuery) -> ApiResult<Page<Revision>> {
    let queries = under_artifacts(app, scope, family, &ask, ask.alternatives(&ask.revision_refs)?).await?;
    let queries = under_variants(app, scope, family, &ask, queries).await?;
    let mut found = ask.gathering();
    for query in queries {
        found.add(app.workflows.query_revisions(scope, family, &query).await?);
    }
    Ok(found.page())
}

/// The queries under each artifact that is named; nothing named means everywhere. A name that leads nowhere is no row, not an error.
async fn under_artifacts(app: &App, scope: Scope, family: Family, ask: &HistoryQuery, queries: Vec<Query>) -> ApiResult<Vec<Query>> {
    if ask.artifact_refs.is_empty() {
        return Ok(queries);
    }
    each(&queries, &ask.artifact_refs, |query, _| query)?;
    let mut rows = Vec::new();
    for reference in &ask.artifact_refs {
        rows.extend(absent(app.workflows.named(scope, family, reference.id, reference.slug.as_deref()).await)?);
    }
    each(&queries, &rows, |query, row| Query { artifact: Some(row.id), ..query })
}

/// The same for variants, each of which must be under the artifact that the query names.
async fn under_variants(app: &App, scope: Scope, family: Family, ask: &HistoryQuery, queries: Vec<Query>) -> ApiResult<Vec<Query>> {
    if ask.variant_refs.is_empty() {
        return Ok(queries);
    }
    each(&queries, &ask.variant_refs, |query, _| query)?;
    let mut rows = Vec::new();
    for reference in &ask.variant_refs {
        rows.extend(absent(app.workflows.named_variant(scope, family, reference.id, reference.slug.as_deref()).await)?);
    }
    let mut found = Vec::new();
    for row in rows {
        let fits = |query: &&Query| query.artifact.is_none_or(|artifact| artifact == row.artifact);
        found.extend(queries.iter().filter(fits).map(|query| Query { variant: Some(row.id), ..query.clone() }));
    }
    Ok(found)
}

/// The revisions of a variant, from one version back, newest first.
pub(crate) async fn logged(
    app: &App,
    scope: Scope,
    family: Family,
    (variant, from): (VariantId, Option<i64>),
    depth: Option<i64>,
) -> ApiResult<Page<Revision>> {
    let depth = PageSize::within(depth, DEFAULT_PAGE, MAX_PAGE);
    let found = app.workflows.log(scope, family, variant, from, depth).await?;
    // The log is as long as was asked for; only where it had to end earlier does it say where to go on.
    let ended_early = i64::try_from(found.rows.len()).is_ok_and(|rows| rows + 1 < depth.rows());
    Ok(Page { next: found.cursor(Listed::id).filter(|_| ended_early), rows: found.rows })
}

fn absent<T>(found: Result<T, WorkflowError>) -> ApiResult<Option<T>> {
    match found {
        Ok(row) => Ok(Some(row)),
        Err(WorkflowError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
