-- Which processes live, what they run, and which configuration each has taken up. A row that was not
-- renewed for a minute is a process that died; a privacy deletion waits for those that live.
create table process (
  id uuid primary key,
  host text not null,
  pid int not null,
  version text not null,
  roles text[] not null,
  configuration_version bigint not null,
  started_at timestamptz not null,
  beat_at timestamptz not null
);
