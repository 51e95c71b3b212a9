//! Pages of rows by what they say and belong to.

use kernel::{ArtifactId, ProjectId, RevisionId, VariantId};
use serde_json::Value;
use store::{Arg, Db, Page, PageSize, Row, StoreError, args, holding, page_bytes, page_sql};
use uuid::Uuid;
use work::Workers;

use super::{artifact, artifact_columns, revision, revision_columns, variant, variant_columns};
use crate::flags::FlagFilter;
use crate::{Artifact, Family, Query, Revision, Variant, WorkflowError, tags};

const DEFAULT_PAGE: i64 = 100;
const MAX_PAGE: i64 = 1000;
/// How many rows one statement reads by their ids.
const AT_ONCE: usize = 16;

/// Rows of a page that are not read yet.
pub(crate) struct Found<T> {
    pub(super) rows: Vec<Row>,
    pub(super) size: PageSize,
    pub(super) read: fn(&Row) -> Result<T, StoreError>,
}

impl<T: Send + 'static> Found<T> {
    /// Reads them where there is room for it.
    pub(crate) async fn read(self, workers: &Workers, project: ProjectId) -> Result<Page<T>, WorkflowError> {
        let Self { rows, size, read } = self;
        workers.run(project, page_bytes(&rows), move |_| Ok(size.read(&rows, read)?)).await
    }
}

/// `$1` the project, `$2` the family, `$3` and `$4` the first and the last id, `$5` archived ones too, `$6` name, `$7` description, `$8` tags,
/// `$9` and `$10` roles, `$11` and `$12` the newest and oldest time, `$13` the limit.
///
/// Under an artifact or a variant the range of ids must not look like a way to the rows: without statistics SQLite would walk all ids of
/// the project. `coalesce` keeps it from being one.
macro_rules! common {
    (everywhere) => {
        common!("id")
    };
    (under) => {
        common!("coalesce(id, id)")
    };
    ($id:literal) => {
        concat!(
            "project_id = $1 and family = $2 and ",
            $id,
            " >= $3 and ",
            $id,
            " <= $4 and ($5 or archived_at is null) \
             and ($6 is null or lower(name) like $6 escape '\\' or lower(slug) like $6 escape '\\') \
             and ($7 is null or lower(description) like $7 escape '\\') and ($8 is null or tag_digests like $8) \
             and ($11 is null or created_at <= $11) and ($12 is null or created_at >= $12) and "
        )
    };
}

/// The newest revision of an artifact's default variant; one that is archived only where all are.
macro_rules! newest {
    () => {
        "coalesce((select r.id from revisions r where r.project_id = artifacts.project_id and r.variant_id = \
         (select v.id from variants v where v.project_id = artifacts.project_id and v.artifact_id = artifacts.id order by v.created_at, v.id \
         limit 1) and r.archived_at is null order by r.version desc limit 1), \
         (select r.id from revisions r where r.project_id = artifacts.project_id and r.variant_id = \
         (select v.id from variants v where v.project_id = artifacts.project_id and v.artifact_id = artifacts.id order by v.created_at, v.id \
         limit 1) order by r.version desc limit 1))"
    };
}

macro_rules! words_bytes {
    () => {
        "coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(tags), 0) \
         + coalesce(octet_length(meta), 0)"
    };
}

/// The same query in both directions.
macro_rules! both_ways {
    ($ascending:expr, $columns:expr, $bytes:expr, $table:literal, $filter:expr) => {
        if $ascending {
            page_sql!(select $columns, bytes $bytes, from $table, where $filter, by id "asc", limit "$13")
        } else {
            page_sql!(select $columns, bytes $bytes, from $table, where $filter, by id "desc", limit "$13")
        }
    };
}

/// What the queries of all levels take, in the order of `common`.
struct Common<'a> {
    args: Vec<Arg<'a>>,
    size: PageSize,
    flags: FlagFilter,
}

impl<'a> Common<'a> {
    fn of(project: ProjectId, family: Family, query: &'a Query) -> Result<Self, WorkflowError> {
        let flags = FlagFilter::read(family, query.flags.as_ref())?;
        let (mask, value) = flags.roles.asked();
        let size = PageSize::within(query.limit, DEFAULT_PAGE, MAX_PAGE);
        let (first, last) = bounds(query);
        let text = |text: &Option<String>| text.as_deref().map(holding);
        let args = args![
            project,
            family.kept_as(),
            first,
            last,
            query.include_archived,
            text(&query.name),
            text(&query.description),
            tags::pattern(query.tags.as_ref())?,
            mask,
            value,
            query.newest,
            query.oldest,
            size.rows()
        ];
        Ok(Self { args: args.into(), size, flags })
    }

    async fn page<const N: usize, T>(
        mut self,
        db: &Db,
        sql: &'static str,
        more: [Arg<'a>; N],
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Found<T>, WorkflowError> {
        self.args.extend(more);
        Ok(Found { rows: db.all(sql, self.args).await?, size: self.size, read })
    }
}

/// The ids that a page may hold: always a range, so that the index by id leads to them.
fn bounds(query: &Query) -> (Uuid, Uuid) {
    let (mut first, mut last) = (Uuid::nil(), Uuid::max());
    if let Some(id) = query.id {
        (first, last) = (id, id);
    }
    match query.next {
        Some(next) if query.ascending => first = first.max(Uuid::from_u128(next.as_u128().saturating_add(1))),
        Some(next) => last = last.min(Uuid::from_u128(next.as_u128().saturating_sub(1))),
        None => {}
    }
    (first, last)
}

macro_rules! artifact_filter {
    () => {
        concat!(common!(everywhere), "($9 is null or (roles & $9) = $10) and ($14 is null or is_guarded = $14) and ($15 = 0)")
    };
}

pub(crate) async fn artifacts(db: &Db, project: ProjectId, family: Family, query: &Query) -> Result<Found<Artifact>, WorkflowError> {
    let sql = both_ways!(query.ascending, artifact_columns!(), words_bytes!(), "artifacts", artifact_filter!());
    let common = Common::of(project, family, query)?;
    // An artifact does not show what its revisions are.
    let more = args![Arg::Bool(common.flags.is_guarded), common.flags.traits.mask];
    common.page(db, sql, more, artifact).await
}

macro_rules! variant_filter {
    ($where:ident $under:literal) => {
        concat!(
            common!($where),
            "($9 is null or exists (select 1 from artifacts a where a.project_id = variants.project_id and a.id = variants.artifact_id \
             and (a.roles & $9) = $10)) and ($15 = 0) and ",
            $under
        )
    };
}

pub(crate) async fn variants(db: &Db, project: ProjectId, family: Family, query: &Query) -> Result<Found<Variant>, WorkflowError> {
    let sql = match query.artifact {
        None => both_ways!(query.ascending, variant_columns!(), words_bytes!(), "variants", variant_filter!(everywhere "$14 is null")),
        Some(_) => both_ways!(query.ascending, variant_columns!(), words_bytes!(), "variants", variant_filter!(under "artifact_id = $14")),
    };
    let common = Common::of(project, family, query)?;
    let hidden = common.flags.traits.mask | i64::from(common.flags.is_guarded.is_some());
    common.page(db, sql, args![query.artifact, hidden], variant).await
}

macro_rules! revision_filter {
    ($where:ident $under:literal) => {
        concat!(
            common!($where),
            "($9 is null or exists (select 1 from artifacts a where a.project_id = revisions.project_id and a.id = revisions.artifact_id \
             and (coalesce(a.roles, case when traits is null then null else 0 end) & $9) = $10)) \
             and ($15 is null or (traits & $15) = $16) and ($17 is null or lower(message) like $17 escape '\\') \
             and ($18 is null or created_by_id = $18) and ($19 is null or created_at = $19) and ($20 is null or version = $20) and ",
            $under
        )
    };
}

macro_rules! revision_bytes {
    () => {
        concat!("coalesce(octet_length(data), 0) + coalesce(octet_length(message), 0) + ", words_bytes!())
    };
}

pub(crate) async fn revisions(db: &Db, project: ProjectId, family: Family, query: &Query) -> Result<Found<Revision>, WorkflowError> {
    macro_rules! sql {
        ($where:ident $under:literal) => {
            both_ways!(query.ascending, revision_columns!(), revision_bytes!(), "revisions", revision_filter!($where $under))
        };
    }
    let (sql, under) = match (query.variant, query.artifact) {
        (Some(variant), _) => (sql!(under "variant_id = $14"), Some(variant.uuid())),
        (None, Some(artifact)) => (sql!(under "artifact_id = $14"), Some(artifact.uuid())),
        (None, None) => (sql!(everywhere "$14 is null"), None),
    };
    let common = Common::of(project, family, query)?;
    if common.flags.is_guarded.is_some() {
        return Ok(Found { rows: Vec::new(), size: common.size, read: revision });
    }
    let (mask, value) = common.flags.traits.asked();
    let message = query.message.as_deref().map(holding);
    common.page(db, sql, args![under, mask, value, message, query.author, query.date, query.version], revision).await
}

macro_rules! simple_filter {
    () => {
        concat!(
            common!(everywhere),
            "($9 is null or (coalesce(roles, 0) & $9) = $10) and ($14 is null or is_guarded = $14) \
             and ($15 is null or exists (select 1 from revisions t where t.project_id = artifacts.project_id and t.id = ",
            newest!(),
            " and (t.traits & $15) = $16))"
        )
    };
}

macro_rules! simple_columns {
    () => {
        concat!(
            artifact_columns!(),
            ", ",
            newest!(),
            " as newest_id, (select v.id from variants v where v.project_id = artifacts.project_id and v.artifact_id = artifacts.id \
             order by v.created_at, v.id limit 1) as variant_id"
        )
    };
}

macro_rules! simple_bytes {
    () => {
        concat!(
            words_bytes!(),
            " + coalesce((select octet_length(t.data) from revisions t where t.project_id = artifacts.project_id and t.id = ",
            newest!(),
            "), 0)"
        )
    };
}

/// An artifact, its default variant and the newest revision there.
pub(crate) type SimpleIds = (Artifact, Option<VariantId>, Option<RevisionId>);

fn simple_ids(row: &Row) -> Result<SimpleIds, StoreError> {
    Ok((artifact(row)?, row.get("variant_id")?, row.get("newest_id")?))
}

/// Artifacts by what they and their newest revisions say, and those revisions.
pub(crate) async fn simple(
    db: &Db,
    workers: &Workers,
    project: ProjectId,
    family: Family,
    query: &Query,
) -> Result<(Page<SimpleIds>, Vec<Revision>), WorkflowError> {
    let sql = both_ways!(query.ascending, simple_columns!(), simple_bytes!(), "artifacts", simple_filter!());
    let common = Common::of(project, family, query)?;
    let (mask, value) = common.flags.traits.asked();
    let more = args![Arg::Bool(common.flags.is_guarded), mask, value];
    let found = common.page(db, sql, more, simple_ids).await?;
    let bytes = page_bytes(&found.rows);
    let page = found.read(workers, project).await?;
    let ids: Vec<RevisionId> = page.rows.iter().filter_map(|(_, _, newest)| *newest).collect();
    let mut rows = Vec::with_capacity(ids.len());
    for some in ids.chunks(AT_ONCE) {
        let sql = concat!(
            "select ",
            revision_columns!(),
            " from revisions where project_id = $1 \
             and id in ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
        );
        let some = some.iter().map(|id| Arg::from(*id));
        let unused = std::iter::repeat_n(Arg::Uuid(None), AT_ONCE);
        rows.extend(db.all(sql, std::iter::once(Arg::from(project)).chain(some.chain(unused).take(AT_ONCE))).await?);
    }
    let read = move |_: &kernel::Budget| rows.iter().map(revision).collect::<Result<Vec<_>, _>>().map_err(WorkflowError::from);
    Ok((page, workers.run(project, bytes, read).await?))
}

/// Artifacts whose tags were written before they could be searched.
pub(crate) async fn unread_artifacts(db: &Db, most: i64) -> Result<Vec<(ProjectId, ArtifactId, Value)>, StoreError> {
    let sql = "select project_id, id, tags from artifacts where tags is not null and tag_digests is null limit $1";
    db.all(sql, args![most]).await?.iter().map(|row| Ok((row.get("project_id")?, row.get("id")?, row.get("tags")?))).collect()
}

/// Revisions whose data was written before it could be searched by what it says.
pub(crate) async fn unread_revisions(db: &Db, most: i64) -> Result<Vec<(ProjectId, RevisionId, Value)>, StoreError> {
    let sql = "select project_id, id, data from revisions where data is not null and traits is null and family = 'workflow' limit $1";
    db.all(sql, args![most]).await?.iter().map(|row| Ok((row.get("project_id")?, row.get("id")?, row.get("data")?))).collect()
}
