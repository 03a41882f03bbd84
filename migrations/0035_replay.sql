-- Replays: a past span of the log sent again to one destination. A replay is a row; the one process that leads
-- reads its spans in order and appends what is selected to topic `outbound.replay`, which delivery reads.
create table replay (
  id int generated always as identity primary key,
  workspace_id int not null,
  destination_id int not null,
  actor text not null,
  -- draining: everything is in the topic, and not yet delivered or given up.
  state text not null check (state in ('running', 'paused', 'draining', 'finished', 'cancelled')),
  -- What is selected; null: any. The time is the receipt's or the call's own, `until` excluded.
  by text not null check (by in ('receivedAt', 'timestamp')),
  since timestamptz not null,
  until timestamptz not null,
  source_ids int[] not null,
  types text[],
  events text[],
  user_ids text[],
  anonymous_ids text[],
  rate_per_second double precision not null check (rate_per_second > 0),
  -- Which shard its records name in the topic: nobody else's while it is open.
  slot smallint not null,
  -- Made when it starts: the spans of the log in the order they are read, the numbers its records have in its
  -- shard, which no replay before it had, and where the topic ended.
  spans jsonb,
  seq_from bigint,
  seq_until bigint,
  heads bigint[],
  given_up_before bigint,
  -- Offsets of the spans read so far, and what became of the calls in them.
  read bigint not null default 0,
  selected bigint not null default 0,
  sent bigint not null default 0,
  historical bigint not null default 0,
  filtered bigint not null default 0,
  unsendable bigint not null default 0,
  suppressed bigint not null default 0,
  duplicate bigint not null default 0,
  -- Offsets the log had no more when they were to be read.
  expired bigint not null default 0,
  -- Behind the last record in each partition of the topic.
  tails bigint[],
  -- Offsets read in a second of late.
  pace double precision,
  -- Why it paused by itself.
  trouble text,
  -- Of those sent, given up in the end: undelivered when it was cancelled, or dead.
  given_up bigint,
  created_at timestamptz not null,
  ended_at timestamptz,
  -- Cancelled, and nothing more is appended: `tails` are where the topic ended then.
  cut boolean not null default false,
  -- Nothing of it is on its way any more.
  settled boolean not null default false
);

-- One at a time for a destination, and a shard for each.
create unique index replay_open_destination on replay (destination_id) where not settled;
create unique index replay_open_slot on replay (slot) where not settled;

-- What is on its way: in the topic above what delivery has settled, which may be other replays' too, and parked;
-- and what was given up since it started.
create view replay_standing as
select r.id,
  (select coalesce(sum(greatest(t.tail - greatest(coalesce(p.next, 0), t.head), 0)), 0)::bigint
     from unnest(r.heads, r.tails) with ordinality as t(head, tail, n)
     left join position p
       on p.reader = 'deliver' and p.topic = 'outbound.replay' and p.partition = t.n - 1) as waiting,
  coalesce(l.parked, 0)::bigint as parked,
  (coalesce(l.given_up, 0) - coalesce(r.given_up_before, 0))::bigint as given_up
from replay r
left join lateral (
  select sum(taken - delivered - dead - cancelled) as parked, sum(dead + cancelled) as given_up
    from delivery_ledger l
   where l.topic = 'outbound.replay' and l.destination_id = r.destination_id) l on true
where not r.settled;
