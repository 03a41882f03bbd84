-- Imports of past calls: how far each has come, so that it goes on there, and what its last chunks answered.
create table import (
  id int generated always as identity primary key,
  source_id int not null,
  -- What the same content under the same mapping has again: an import of it goes on instead of beginning anew.
  identity text not null,
  -- What ids of calls without one are made from.
  key uuid not null,
  name text not null,
  actor text not null,
  format text not null check (format in ('ndjson', 'csv', 'tsv')),
  mapping json,
  columns json,
  dry_run boolean not null,
  state text not null check (state in ('running', 'finished', 'cancelled')),
  -- Of the content after decompression, where it is known.
  bytes bigint,
  -- The byte and the line that come next.
  place bigint not null,
  line bigint not null,
  accepted bigint not null default 0,
  rejected bigint not null default 0,
  filtered bigint not null default 0,
  suppressed bigint not null default 0,
  -- Of the last two chunks: where they began and ended, their digest, and what was rejected of them.
  recent json not null default '[]',
  -- Raised by whoever takes a chunk: who finishes it must still be the last who did.
  attempt bigint not null default 0,
  -- Noted before a chunk is appended: by which attempt first, when it was received, its digest, and where the
  -- log ended in each partition.
  pending_attempt bigint,
  pending_at timestamptz,
  pending_digest text,
  pending_ends json,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  unique (source_id, identity)
) with (fillfactor = 50);
