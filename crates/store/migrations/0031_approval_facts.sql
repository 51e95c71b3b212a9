-- Who asks and why: the agent whose call it is, and the pattern of the rule that asked; nothing where no rule fits and the default asked.
alter table tool_approvals add column agent_id uuid;
alter table tool_approvals add column rule text;
