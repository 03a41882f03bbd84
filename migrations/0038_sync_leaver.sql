-- Users that a destination was told are in an audience, and who left it, or lost its value, while the destination
-- was off: it is told so when it is on again. At most one row for each of its users.
create table sync_leaver (
  audience_id int not null,
  destination_id int not null,
  user_id text collate "C" not null,
  -- Of the user, in which the outbox counts what it is told.
  shard smallint not null,
  primary key (audience_id, destination_id, user_id)
);
create index sync_leaver_user on sync_leaver (user_id);
