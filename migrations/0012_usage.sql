-- What is metered: calls, and who was seen in each month. No foreign keys: usage outlives its source.

-- `writer` is one of the partitions the writing batch had locked, so that no two transactions wait for
-- one row; it is summed over when read.
create table usage_call (
  workspace_id int not null,
  source_id int not null,
  day date not null,
  type text not null,
  writer text not null,
  calls bigint not null,
  primary key (workspace_id, day, source_id, type, writer)
) with (fillfactor = 50);

-- Ids seen in a month, one row for each batch that met ids it did not know to be seen: entries of 16
-- bytes (src/domain/usage.ts). One that stands here twice, or in a page as well, counts once.
create table usage_sighting (
  id bigint generated always as identity primary key,
  workspace_id int not null,
  month int not null,
  entries bytea not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- Digests do not compress: do not try.
alter table usage_sighting alter column entries set storage external;
create index usage_sighting_month on usage_sighting (workspace_id, month, id);

-- The same, folded: each id once, by the first byte of its entry, with how many of a page count.
create table usage_page (
  workspace_id int not null,
  month int not null,
  page smallint not null,
  entries bytea not null,
  user_ids int not null,
  anonymous_ids int not null,
  primary key (workspace_id, month, page)
);
alter table usage_page alter column entries set storage external;

-- What ids are hashed with: without it no entry can be traced to an id by guessing.
create table usage_key (
  only_row boolean primary key default true check (only_row),
  key text not null
);
insert into usage_key (key) values (gen_random_uuid()::text || gen_random_uuid()::text);
