-- The approval that a call waits for, or that it was made with. Calls from before do not say.
alter table tool_calls add column approval_id uuid;
