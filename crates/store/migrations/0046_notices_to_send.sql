-- Who is still to be told of which approval. A row is made with its approval and goes when its receiver was told, or cannot be; whoever works
-- on it has it until the time it names, so that a server that stops in the middle leaves it to others.
create table notices_to_send (
    project_id uuid not null references projects (id) on delete cascade,
    approval_id uuid not null,
    notice_id uuid not null,
    taken_until bigint not null,
    primary key (project_id, approval_id, notice_id),
    foreign key (project_id, approval_id) references tool_approvals (project_id, id) on delete cascade,
    foreign key (project_id, notice_id) references approval_notices (project_id, id) on delete cascade
);

create index notices_to_send_free on notices_to_send (taken_until);
create index notices_to_send_notice on notices_to_send (project_id, notice_id);
