-- What the archive holds: its segments, which are its index by time too, and how each partition stands.
create table archive_segment (
  topic text not null,
  partition int not null,
  -- Offsets in [first, next): the segments of a partition follow each other without gap or overlap.
  first_offset bigint not null,
  next_offset bigint not null,
  -- Below the archive's place.
  path text not null,
  -- Raised when its content is written anew without users who were erased.
  generation int not null default 0,
  entries int not null,
  bytes bigint not null,
  sha256 bytea not null,
  -- Of its entries; null when none is left.
  received_from timestamptz,
  received_to timestamptz,
  timestamp_from timestamptz,
  timestamp_to timestamptz,
  -- The erasures up to this one have been carried out on it.
  erased_to bigint not null default 0,
  written_at timestamptz not null,
  primary key (topic, partition, first_offset)
);
create index archive_segment_received on archive_segment (topic, partition, received_to);

-- Told by whoever archives the partition: where the log began and ended, and what went wrong last.
create table archive_partition (
  topic text not null,
  partition int not null,
  log_start bigint not null,
  log_end bigint not null,
  seen_at timestamptz not null,
  -- null when nothing has gone wrong since the last segment.
  trouble text,
  trouble_at timestamptz,
  primary key (topic, partition)
);
