-- A key that is taken by a call which has not been sent. What an earlier version took says nothing, and so may have been.
alter table tool_idempotency add column is_unsent boolean not null default false;
