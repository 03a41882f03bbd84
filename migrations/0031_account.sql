-- Accounts: who belongs to which, how many of their users meet what, and what of it is not counted yet.

alter table audience
  -- Whom the condition is about: each user, or the users of an account together. Fixed at creation.
  add column scope text not null default 'user' check (scope in ('user', 'account'));

-- A group call ties its user to its group for good. A row is only ever changed under the ustate lock
-- of its user, and a new one comes with a new `ver` of that user.
create table account_user (
  user_key bigint not null,
  workspace_id int not null,
  group_id text collate "C" not null,
  primary key (user_key, group_id)
);
create index account_user_of on account_user (workspace_id, group_id, user_key);

-- What users changed of their accounts' counts: `mark` is an audience whose inner condition they
-- meet, 0 for being tied at all and -1 for having a user id besides. Appended in the user's own
-- transaction and added up by the sync, so that no row is fought over.
create table account_delta (
  id bigint generated always as identity primary key,
  workspace_id int not null,
  group_id text not null,
  mark int not null,
  change int not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Users whose memberships must be looked at again, whatever becomes of their accounts' counts.
create table account_visit (
  id bigint generated always as identity primary key,
  user_key bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Deltas added up: of the users tied to an account, how many have the mark.
create table account_count (
  workspace_id int not null,
  group_id text collate "C" not null,
  mark int not null,
  users int not null,
  primary key (workspace_id, group_id, mark)
) with (fillfactor = 80);
create index account_count_mark on account_count (mark);

-- Accounts that came to pass or to fail, and the last of their users who was looked at since.
create table account_turn (
  workspace_id int not null,
  group_id text collate "C" not null,
  after bigint not null,
  primary key (workspace_id, group_id)
);
