-- One name for one tool however it was called, and what led to the call.
alter table tool_calls add column tool text;
alter table tool_calls add column agent_id uuid;
alter table tool_calls add column run_id uuid;
alter table tool_calls add column step text;
alter table tool_calls add column delivery_id uuid;
