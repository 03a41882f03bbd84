-- Who is not to be heard any more, and the work of erasing users: ids stand here only until it is done, hashes for good.

-- What ids are hashed with: without it no hash can be traced to an id by guessing.
create table suppression_key (
  only_row boolean primary key default true check (only_row),
  key text not null
);
insert into suppression_key (key) values (gen_random_uuid()::text || gen_random_uuid()::text);

-- One id of one workspace. Every process holds all of them in memory.
create table suppression (
  hash bytea primary key,
  workspace_id int not null,
  -- Whatever comes is dropped, until it is unsuppressed.
  suppressed boolean not null default false,
  -- What was sent before is dropped: the request of a deletion.
  deleted_before timestamptz,
  version bigint not null
);
create index suppression_since on suppression (version);

-- Raised in the transaction that changes any, under its row lock: versions are visible in their order.
create table suppression_version (
  only_row boolean primary key default true check (only_row),
  version bigint not null
) with (fillfactor = 50);
insert into suppression_version (version) values (0);

-- The suppressions each process goes by: an erasure begins when all that live have taken up its own.
alter table process add column suppression_version bigint not null default 0;

-- The ids of a request, and those found to be of the same profile.
create table deletion_subject (
  request_id int not null references deletion_request on delete cascade,
  n int not null,
  -- As in `identity`: 0 user id, 1 anonymous id.
  kind smallint not null,
  -- Null once the request is finished.
  value text collate "C",
  hash bytea,
  found boolean not null default false,
  -- Where in the log its profile was erased: an order that stands there twice is obeyed once.
  topic text,
  partition int,
  log_offset bigint,
  primary key (request_id, n)
);
insert into deletion_subject (request_id, n, kind, value)
select id, 0, 0, user_id from deletion_request where user_id is not null
union all
select id, 1, 1, anonymous_id from deletion_request where anonymous_id is not null;

-- Dropping the columns drops what was checked and indexed of them.
alter table deletion_request
  drop column user_id,
  drop column anonymous_id,
  drop constraint deletion_request_state_check,
  drop constraint deletion_request_check1,
  add column kind text not null default 'delete_only'
    check (kind in ('suppress_only', 'unsuppress', 'delete_only', 'suppress_with_delete')),
  add column step text not null default 'recorded'
    check (step in ('recorded', 'ordered', 'erasing', 'waiting', 'done')),
  -- The suppressions it made; null: not recorded yet.
  add column suppression_version bigint,
  -- Both hashed: by whom a request is asked for twice, and what was asked.
  add column idempotency_key bytea,
  add column idempotency_body bytea,
  add column stores jsonb not null default '{}',
  -- Why it failed.
  add column reason text,
  add column started_at timestamptz,
  add column erased_at timestamptz,
  add column finished_at timestamptz,
  add constraint deletion_request_state_check
    check (state in ('received', 'running', 'finished', 'failed'));
create index deletion_request_open on deletion_request (id) where state in ('received', 'running');
create unique index deletion_request_once on deletion_request (workspace_id, idempotency_key)
  where idempotency_key is not null;

-- What the projector erased, until the request is finished. `sources` are those that had seen the user;
-- 0 among them: it is not known which, so that all of the workspace count.
create table deletion_profile (
  request_id int not null references deletion_request on delete cascade,
  user_key bigint not null,
  sources int[] not null,
  primary key (request_id, user_key)
);
create table deletion_identity (
  request_id int not null references deletion_request on delete cascade,
  user_key bigint not null,
  kind smallint not null,
  value text collate "C" not null,
  primary key (request_id, kind, value)
);

-- How many notices of a request go where; those on their way stand in `outbox` under run -request.
create table deletion_notice (
  request_id int not null references deletion_request on delete cascade,
  source_id int not null,
  destination_id int not null,
  notices int not null,
  primary key (request_id, source_id, destination_id)
);

-- Parked rows of erased users: their partition's owner gives them up.
create table parked_erasure (parked_id bigint primary key);
