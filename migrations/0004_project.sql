-- Project: who is who, one packed state a user, audience membership, and what audiences are built from.

-- Surrogate keys of users, taken in blocks.
create sequence user_key cache 1;

-- kind: 0 user id, 1 anonymous id. A row is only ever changed under the ustate lock of its owner.
create table identity (
  workspace_id int not null,
  kind smallint not null,
  value text collate "C" not null,
  user_key bigint not null,
  primary key (workspace_id, kind, value) include (user_key)
);
-- All identities of one user: merges and deletion requests.
create index identity_user on identity (user_key);

-- One row a user: leaf summaries, membership bits and traits, packed (src/audience/pack.ts).
-- `ver` rises with every write, so that a cached state is known to be the stored one.
-- `merged_into` marks the tombstone that a merge leaves.
create table ustate (
  user_key bigint primary key,
  shard smallint not null,
  workspace_id int not null,
  ver bigint not null,
  user_id text,
  st bytea not null,
  due timestamptz,
  merged_into bigint
) with (fillfactor = 75);
create index ustate_due on ustate (shard, due) where due is not null;

-- Rows exist only while the user is a member or was last synced as one.
create table membership (
  audience_id int not null,
  shard smallint not null,
  user_key bigint not null,
  user_id text,
  cur boolean not null,
  synced boolean not null,
  entered_at timestamptz,
  primary key (audience_id, user_key)
) with (fillfactor = 80);
create index membership_unsynced on membership (shard, audience_id, user_key)
  where cur is distinct from synced and user_id is not null;

-- Merges in the order they were applied.
create table merge (
  seq bigint generated always as identity primary key,
  workspace_id int not null,
  from_key bigint not null,
  into_key bigint not null,
  topic text not null,
  partition int not null,
  log_offset bigint not null
);

-- What every batch folds and evaluates by: its version changes only under the locks of all of the
-- projector's positions, so a batch that holds its own has read the plan that holds for it.
create table project_plan (
  id smallint primary key check (id = 0),
  version bigint not null,
  -- The newest configuration the plan was made from.
  configuration bigint not null
) with (fillfactor = 50);
insert into project_plan (id, version, configuration) values (0, 1, 0);

-- A build brings audiences in: 'folding' reads history into their new leaves, 'evaluating' then
-- goes through all users by key.
create table audience_build (
  id int generated always as identity primary key,
  phase text not null check (phase in ('folding', 'evaluating')),
  -- The last user evaluated.
  evaluated bigint not null
);

-- Offsets before the fence are history, folded by the build as far as `next`; from the fence on the
-- leaves are folded live.
create table audience_fence (
  build_id int not null references audience_build on delete cascade,
  topic text not null,
  partition int not null,
  fence bigint not null,
  next bigint not null,
  primary key (build_id, topic, partition)
);

-- A summary that audiences share; `keep` is the number of newest events it knows.
create table leaf (
  id int generated always as identity primary key,
  workspace_id int not null,
  hash text not null,
  keep int not null,
  build_id int not null
);

create table audience_state (
  audience_id int primary key,
  workspace_id int not null,
  version bigint not null,
  state text not null check (state in ('backfilling', 'live')),
  live_at timestamptz,
  condition jsonb not null,
  -- The condition's canonical text: an edit that says the same changes nothing.
  definition text not null,
  build_id int
);
