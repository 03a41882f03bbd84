-- The attempt log by the day: days are dropped whole when they are past their retention.
alter table attempt rename to attempt_before;
drop index attempt_started;

create sequence attempt_id cache 1000;

create table attempt (
  id bigint not null default nextval('attempt_id'),
  started_at timestamptz not null,
  topic text not null,
  partition int not null,
  log_offset bigint not null,
  destination_id int not null,
  -- The chain's hash, by which a visitor's attempts are found; null in rows of before.
  chain bigint,
  message_id text not null,
  attempt int not null,
  url text not null,
  duration_ms int not null,
  outcome text not null,
  reason text,
  status int,
  -- Milliseconds; null: the step did not happen, as on a connection that was there already.
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  reused boolean,
  -- The chain's order was suspended when it went out.
  order_suspended boolean not null default false,
  recovery_id int,
  response_head text
) partition by range (started_at);

create index on attempt (destination_id, started_at);
create index on attempt (message_id);
create index on attempt using brin (started_at);

do $$
declare
  day timestamptz;
  name text;
begin
  for day in select distinct date_trunc('day', started_at, 'UTC') from attempt_before loop
    name := 'attempt_' || to_char(day at time zone 'UTC', 'YYYYMMDD');
    execute format('create table %I (like attempt including all) with (autovacuum_vacuum_insert_threshold = -1)', name);
    execute format('alter table attempt attach partition %I for values from (%L) to (%L)', name, day, day + interval '1 day');
  end loop;
end $$;

insert into attempt (started_at, topic, partition, log_offset, destination_id, message_id, attempt, url,
  duration_ms, outcome, reason, status, response_head)
select started_at, topic, partition, log_offset, destination_id, message_id, attempt, url,
  duration_ms, outcome, reason, status, response_head
  from attempt_before order by started_at;

drop table attempt_before;
