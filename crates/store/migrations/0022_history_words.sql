-- Every row of a history has words of its own, and says who changed and archived it.
alter table artifacts add column roles bigint;
alter table artifacts add column tag_digests text;
alter table artifacts add column updated_by_id uuid;
alter table artifacts add column archived_by_id uuid;

alter table variants add column tags text;
alter table variants add column meta text;
alter table variants add column tag_digests text;
alter table variants add column updated_by_id uuid;
alter table variants add column archived_by_id uuid;

alter table revisions add column name text;
alter table revisions add column description text;
alter table revisions add column tags text;
alter table revisions add column meta text;
alter table revisions add column traits bigint;
alter table revisions add column tag_digests text;
alter table revisions add column updated_at bigint not null default 0;
alter table revisions add column updated_by_id uuid;
alter table revisions add column archived_by_id uuid;

update revisions set updated_at = created_at;

-- Flags of workflows were free texts of JSON, written without spaces; three of them mean something.
update artifacts set roles = case when flags like '%"is_application":true%' then 1 else 0 end
    + case when flags like '%"is_evaluator":true%' then 2 else 0 end
    + case when flags like '%"is_snippet":true%' then 4 else 0 end
    where family = 'workflow'
    and (flags like '%"is_application":%' or flags like '%"is_evaluator":%' or flags like '%"is_snippet":%');

-- A revision's slug is its author's from now on. Those made before are unique already: they end in the variant's version.
drop index revisions_slug;
create unique index revisions_slug on revisions (project_id, family, slug);
create index revisions_artifact on revisions (project_id, artifact_id, id);
create index revisions_variant on revisions (project_id, variant_id, id);
create index variants_lines on variants (project_id, artifact_id, id);

-- What the program has to work out from the JSON of rows made before; nothing else is ever in here.
create index artifacts_unread on artifacts (project_id, id) where tags is not null and tag_digests is null;
create index revisions_unread on revisions (project_id, id) where data is not null and traits is null and family = 'workflow';
