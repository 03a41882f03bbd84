-- How calls broke their sources' tracking plans, by UTC day: names and keywords, never what a call held.
-- No foreign key: a source that is deleted while others are saved must not hold those up.
create table plan_violation (
  day date not null,
  source_id int not null,
  event text not null,
  path text not null,
  -- A JSON Schema keyword; 'other' with an empty event and path for what had no row of its own.
  kind text not null,
  calls bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (day, source_id, event, path, kind)
) with (fillfactor = 70);
