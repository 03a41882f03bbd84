-- What delivery could not settle by posting. A row in `parked` is one obligation: one message of the log
-- to one destination. Within a chain (topic, destination, log key) only the first row has a next_at.
create table parked (
  id bigint generated always as identity primary key,
  topic text not null,
  partition int not null,
  log_offset bigint not null,
  destination_id int not null,
  -- 64 bits of a hash over the log key: chains that collide merely wait for each other.
  chain bigint not null,
  message_id text not null,
  type text not null,
  -- temporary: tried and failed; lane_full, behind_parked: not tried yet.
  reason text not null,
  -- The bytes sent in every try; null: read from the log again when claimed.
  body bytea,
  parked_at timestamptz not null,
  next_at timestamptz,
  first_try_at timestamptz,
  attempts int not null default 0,
  -- URLs that refused for good; later rounds leave them out.
  final_urls text[] not null default '{}',
  last_reason text,
  last_status int,
  lease_owner text,
  lease_until timestamptz,
  unique (topic, partition, log_offset, destination_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index parked_due on parked (destination_id, next_at) where next_at is not null;
create index parked_chain on parked (topic, partition, destination_id, chain, log_offset);

-- What was given up, with its reason; `body` is null where the log still has to be asked.
create table dead (
  id bigint generated always as identity primary key,
  topic text not null,
  partition int not null,
  log_offset bigint not null,
  destination_id int not null,
  message_id text not null,
  type text not null,
  reason text not null,
  status int,
  attempts int not null,
  body bytea,
  first_try_at timestamptz,
  dead_at timestamptz not null,
  unique (topic, partition, log_offset, destination_id)
);

create index dead_destination on dead (destination_id, dead_at);

-- One row per request made. Never bodies sent; of an answer at most its first bytes.
create table attempt (
  started_at timestamptz not null,
  topic text not null,
  partition int not null,
  log_offset bigint not null,
  destination_id int not null,
  message_id text not null,
  attempt int not null,
  url text not null,
  duration_ms int not null,
  outcome text not null,
  reason text,
  status int,
  response_head text
);

create index attempt_started on attempt using brin (started_at);
