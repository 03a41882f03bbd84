-- What became of everything delivery took out of the log without delivering it at once: written in the
-- transaction of each row, so that no message can leave `parked` or `dead` uncounted.
create table delivery_ledger (
  topic text not null,
  partition int not null,
  -- 0: the partition as a whole.
  destination_id int not null,
  -- Rows that entered `parked`, or `dead` straight from the log.
  taken bigint not null default 0,
  -- How they ended; what was taken and has not ended is parked now.
  delivered bigint not null default 0,
  dead bigint not null default 0,
  cancelled bigint not null default 0,
  -- Of those taken: dead ones that an operator parked again, and ones the position had not
  -- heard of when its process died, whose offset was therefore read again.
  recovered bigint not null default 0,
  repeated bigint not null default 0,
  -- Bodies of the rows parked now, each counted for every row that refers to it.
  body_bytes bigint not null default 0,
  primary key (topic, partition, destination_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

insert into delivery_ledger (topic, partition, destination_id, taken, dead, body_bytes)
select topic, partition, destination_id, sum(parked + dead), sum(dead), sum(bytes) from (
  select topic, partition, destination_id, count(*) as parked, 0 as dead, sum(body_bytes) as bytes
    from parked group by 1, 2, 3
  union all
  select topic, partition, destination_id, 0, count(*), 0 from dead group by 1, 2, 3
) t group by 1, 2, 3;

alter table dead
  -- Null in rows of before.
  add column chain bigint,
  -- When an operator sent it once more; null again when it died again.
  add column replayed_at timestamptz;

create index dead_at on dead (dead_at);

alter table dead set (autovacuum_vacuum_scale_factor = 0.05);
alter table position set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
