-- Rebuilding the projector's whole state from the log, beside the line.

-- Calls that decided who is who, in the order they were folded. Between partitions the log has no order:
-- a rebuild folds these in this one, and so comes to the same people.
create table identity_order (
  seq bigint generated always as identity,
  topic text not null,
  partition int not null,
  log_offset bigint not null,
  -- Of an alias: what its previous id was taken for, 0 a user id, 1 an anonymous id.
  previous smallint,
  primary key (topic, partition, log_offset)
);
-- Of calls folded before, those that merged are known.
insert into identity_order (topic, partition, log_offset)
select topic, partition, log_offset from merge order by seq
on conflict do nothing;

-- The state is folded into a schema of its own, rebuild_<id>, and comes into the place of the live one.
create table rebuild (
  id int generated always as identity primary key,
  state text not null check (state in
    ('requested', 'folding', 'comparing', 'differs', 'swapping',
     'swapped', 'verified', 'cancelled', 'failed')),
  actor text not null,
  -- Only compared, never swapped in.
  verify_only boolean not null,
  -- From what the log still has, where it no longer has everything.
  from_kept boolean not null,
  -- Swapped in though it differs.
  accepts_differences boolean not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  -- What it waits for, or why it failed.
  reason text,
  -- Of the last comparison: when, of how many users, how many of them differ, and the first of those.
  compared_at timestamptz,
  users bigint,
  differing bigint,
  differences json
);
-- One at a time.
create unique index rebuild_open on rebuild ((true))
  where state in ('requested', 'folding', 'comparing', 'differs', 'swapping');
