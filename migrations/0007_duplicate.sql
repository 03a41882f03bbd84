-- Which calls each reader has seen within the last day, by partition and hour of receipt: what it
-- needs to recognise a duplicate. Entries are 24 bytes: digest 16, offset above base 4, ms in hour 4.
-- An entry that stands here twice, or at an offset its reader has not reached, changes no verdict.

-- As appended, one row per batch and hour, until the hour is sealed.
create table duplicate_chunk (
  id bigint generated always as identity,
  reader text not null,
  topic text not null,
  partition int not null,
  hour int not null,
  base bigint not null,
  entries bytea not null
);
-- Digests do not compress: do not try.
alter table duplicate_chunk alter column entries set storage external;
create index duplicate_chunk_hour on duplicate_chunk (reader, topic, partition, hour);

-- A sealed part of an hour: its Bloom filter, and its entries in pages by the digest's first bits.
create table duplicate_segment (
  id bigint generated always as identity primary key,
  reader text not null,
  topic text not null,
  partition int not null,
  hour int not null,
  base bigint not null,
  last bigint not null,
  high bigint not null,
  page_bits smallint not null,
  bloom bytea not null
);
alter table duplicate_segment alter column bloom set storage external;
create index duplicate_segment_hour on duplicate_segment (reader, topic, partition, hour);

create table duplicate_page (
  segment_id bigint not null,
  page int not null,
  entries bytea not null,
  primary key (segment_id, page)
);
alter table duplicate_page alter column entries set storage external;
