-- Sync: runs and what each saw, when each audience is next, and the outbox that the relay empties
-- into topic `outbound`.

-- One sync of one or more audiences. 'requested' waits for the leader; 'running' survives its leader.
create table sync_run (
  id bigint generated always as identity primary key,
  state text not null check (state in ('requested', 'running', 'finished', 'failed')),
  audience_ids int[] not null,
  requested_at timestamptz,
  started_at timestamptz,
  finished_at timestamptz,
  -- End offsets of `calls` by partition, fixed when the run was opened.
  barrier bigint[],
  -- Why it failed.
  reason text
);
create index sync_run_open on sync_run (id) where state in ('requested', 'running');

-- As of when, and of which log offsets, users were compared: shard -1 is the run's opening, which
-- holds for every shard without a row of its own; `positions` maps topic/partition to the next offset.
create table sync_chunk (
  run_id bigint not null,
  shard smallint not null,
  chunk int not null,
  at timestamptz not null,
  positions jsonb not null,
  users int not null,
  emitted int not null,
  primary key (run_id, shard, chunk)
);

-- The last sync of each audience, and when the next is due. `version` is that of audience_state.
create table sync_schedule (
  audience_id int primary key,
  version text not null,
  slot bigint not null,
  started_at timestamptz not null,
  next_sync_at timestamptz not null
) with (fillfactor = 50);

-- Messages decided and not yet known to be in the log. (shard, seq) is what readers drop repeats by.
create table outbox (
  shard smallint not null,
  seq bigint not null,
  run_id bigint not null,
  message_id text not null,
  origin text not null,
  workspace_id int not null,
  destination_id int not null,
  user_id text not null,
  at timestamptz not null,
  body bytea not null,
  primary key (shard, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The last seq given out in each shard; its row lock makes seq ascend in commit order.
create table outbox_shard (
  shard smallint primary key,
  seq bigint not null
) with (fillfactor = 50);
insert into outbox_shard (shard, seq) select s, 0 from generate_series(0, 63) s;

-- The one relay's fence, and where in `outbound` everything not checkpointed must lie.
create table relay (
  id smallint primary key check (id = 0),
  epoch bigint not null,
  bounds bigint[]
) with (fillfactor = 50);
insert into relay (id, epoch) values (0, 0);
