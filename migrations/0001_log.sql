-- The log on Postgres: topics in partitions, offsets dense and visible in order, because an append
-- holds its partitions' counter rows from before it takes offsets until it has committed.
create table log_partition (
  topic text not null,
  partition int not null,
  -- The first offset kept, and the next one to be written.
  start_offset bigint not null default 0,
  next_offset bigint not null default 0,
  -- Of the last chunk; never goes back, so a reader at the tail looks at the last days only.
  appended_at timestamptz not null default 'epoch',
  primary key (topic, partition)
) with (fillfactor = 20);

-- One row is what one append wrote to one partition, at most 16 KiB or a single entry: many small
-- entries in one row cost a fraction of a row each. One table per UTC day, created when it begins.
create table log_chunk (
  topic text not null,
  partition int not null,
  first_offset bigint not null,
  next_offset bigint not null,
  appended_at timestamptz not null,
  payload bytea not null,
  primary key (topic, partition, next_offset, appended_at)
) partition by range (appended_at);
-- Compressing costs the appender more than the disk is worth.
alter table log_chunk alter column payload set storage external;

-- A member of a group lives as long as its session holds the advisory lock of its number, and as its
-- beat goes on; both are judged without comparing clocks.
create table log_member (
  number int generated always as identity primary key,
  group_name text not null,
  topics text[] not null,
  beat bigint not null default 0
) with (fillfactor = 20);
create index log_member_group on log_member (group_name);

create table log_lease (
  group_name text not null,
  topic text not null,
  partition int not null,
  owner int references log_member on delete set null,
  committed bigint,
  primary key (group_name, topic, partition)
) with (fillfactor = 50);
create index log_lease_owner on log_lease (owner);
