-- The bytes of parked messages, apart from the rows that change with every try: never updated, shared by the
-- destinations one message was parked for together, and dropped by the hour when no row refers to it.
create sequence parked_body_id cache 200;

create table parked_body (
  body_id bigint not null,
  created_at timestamptz not null,
  bytes bytea not null
) partition by range (created_at);

create index on parked_body (body_id);

alter table parked
  -- The body's place; null: read from the log again when claimed.
  add column body_id bigint,
  add column body_at timestamptz,
  add column body_bytes int not null default 0,
  -- The recovery that parked a dead message once more.
  add column recovery_id int;

update parked set body_id = nextval('parked_body_id'), body_at = parked_at, body_bytes = length(body)
 where body is not null;

do $$
declare
  hour timestamptz;
  name text;
begin
  for hour in select distinct date_trunc('hour', body_at, 'UTC') from parked where body_at is not null loop
    name := 'parked_body_' || to_char(hour at time zone 'UTC', 'YYYYMMDDHH24');
    execute format('create table %I (like parked_body including all) with (autovacuum_vacuum_insert_threshold = -1)', name);
    execute format('alter table parked_body attach partition %I for values from (%L) to (%L)', name, hour, hour + interval '1 hour');
  end loop;
end $$;

insert into parked_body (body_id, created_at, bytes) select body_id, body_at, body from parked where body_id is not null;

alter table parked drop column body;

-- A process claims from the partitions it holds: rows that wait for another process must not stand before its own.
drop index parked_due;
create index parked_due on parked (topic, partition, destination_id, next_at) where next_at is not null;
-- Which hours of bodies are still referred to.
create index parked_body_at on parked (body_at) where body_at is not null;

alter table parked set (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.05
);
