-- How far each reader has come in each partition. The epoch is the fence: a reader that gains a
-- partition bumps it, and every write of that reader names the epoch it gained.
create table position (
  reader text not null,
  topic text not null,
  partition int not null,
  next bigint not null,
  epoch bigint not null,
  state bytea,
  primary key (reader, topic, partition)
) with (fillfactor = 50);
