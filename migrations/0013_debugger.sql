-- Sources whose calls somebody looks at right now, each until a few seconds after the look was last renewed.
-- `last` is the id of its newest entry: whoever writes entries takes it under the row's lock, so that ids are
-- visible in their order; a hole in them is entries that nobody could be shown. `began` is what it was at first.
create table debugger_watch (
  source_id int primary key,
  until timestamptz not null,
  began bigint not null,
  last bigint not null
) with (fillfactor = 50);
-- The newest entries of each, masked before they were written; a crash may lose them.
create unlogged table debugger_entry (
  source_id int not null,
  id bigint not null,
  -- JSON as it is streamed.
  entry text not null,
  primary key (source_id, id)
);
