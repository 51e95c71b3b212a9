-- Where events of a subscription go: to a workflow, or to the webhook of its project.
alter table trigger_subscriptions add column target text not null default 'workflow';
create index trigger_subscriptions_webhook on trigger_subscriptions (project_id, id) where target = 'webhook' and deleted_at is null;
