-- Dead messages sent again by an operator, or by themselves when a URL has healed. A recovery names a
-- filter; the owner of each partition moves the dead rows that match back to `parked`, as fast as the
-- recovery's rate allows, and each of them once.
create table recovery (
  id int generated always as identity primary key,
  destination_id int not null,
  -- operator: asked for; heal: a URL's certificate can be trusted again.
  origin text not null check (origin in ('operator', 'heal')),
  actor text not null,
  state text not null check (state in ('running', 'paused', 'finished', 'cancelled')),
  -- The filter; null: any.
  reason text,
  type text,
  status int,
  message_id text,
  since timestamptz,
  until timestamptz,
  rate_per_second double precision not null check (rate_per_second > 0),
  -- Dead rows that matched when it was made, and those sent again so far.
  matched bigint not null,
  recovered bigint not null default 0,
  -- Of those, the ones that died again and were taken by a later recovery.
  passed_on bigint not null default 0,
  -- Up to when its rate is used up.
  credited_at timestamptz not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  -- Cancelled, and what it had parked is dead again.
  withdrawn boolean not null default false
);

create index if not exists recovery_working on recovery (id)
  where state = 'running' or (state = 'cancelled' and not withdrawn);

alter table dead
  -- When it went out again; null again when that attempt died too.
  add column if not exists replayed_at timestamptz,
  -- The recovery that took it last.
  add column if not exists recovery_id int,
  -- The chain it belonged to; null: given up before chains were kept.
  add column if not exists chain bigint;

create index if not exists dead_open on dead (destination_id, topic, partition, log_offset) where replayed_at is null;
create index if not exists dead_recovery on dead (recovery_id) where recovery_id is not null;
create index if not exists dead_message on dead (message_id);

alter table parked add column if not exists recovery_id int;

create index if not exists parked_recovery on parked (recovery_id) where recovery_id is not null;

-- What operators were told of last, so that every process tells them once in an hour.
create table operator_alert (
  key text primary key,
  told_at timestamptz not null
);
