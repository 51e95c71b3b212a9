-- Requests that came to the one address of a provider, so that a copy of one is known also where no trigger is.

create table hub_signatures (
    provider text not null,
    signature text not null,
    seen_at bigint not null,
    primary key (provider, signature)
);

create index hub_signatures_age on hub_signatures (seen_at);

-- Who cancelled a delivery.
alter table trigger_deliveries add column cancelled_by_id uuid;
