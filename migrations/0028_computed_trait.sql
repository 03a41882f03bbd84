-- Computed traits beside audiences: both are worked out of a user's calls, and synced where they changed.

alter table audience
  add column kind text not null default 'audience' check (kind in ('audience', 'trait')),
  -- IANA; of calendar days and of dates without a zone.
  add column timezone text not null default 'UTC',
  add column include_anonymous boolean not null default true;

alter table audience_state
  add column kind text not null default 'audience' check (kind in ('audience', 'trait')),
  add column timezone text not null default 'UTC';

alter table membership
  -- Of a computed trait: JSON in text, null for none; `cur` says whether there is one.
  add column value text,
  add column synced_value text;

drop index membership_unsynced;
create index membership_unsynced on membership (shard, audience_id, user_key)
  where (cur is distinct from synced or value is distinct from synced_value) and user_id is not null;
