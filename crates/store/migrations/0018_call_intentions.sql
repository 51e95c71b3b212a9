-- A call that changes something is written down before it goes out, with the node that makes it; no node once it has ended.
alter table tool_calls add column node_id uuid;
create index tool_calls_under_way on tool_calls (node_id) where node_id is not null;

-- Nodes with calls under way, and until when they count as alive without another word.
create table nodes (
    id uuid primary key,
    alive_until bigint not null
);
