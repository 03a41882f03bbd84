-- What happened to calls on their way, by hour; processes add to the same rows, each every few seconds.
-- The hour comes first: it is what is asked for and what is deleted.
create table pipeline_count (
  hour timestamptz not null,
  source_id int not null,
  -- 0: at the source itself.
  destination_id int not null,
  step text not null,
  type text not null,
  -- '' where there is none to give.
  reason text not null,
  amount bigint not null,
  primary key (hour, source_id, destination_id, step, type, reason)
) with (fillfactor = 70);
