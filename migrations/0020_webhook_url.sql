-- URLs that are not well, as every process must know and none forgets: what is missing here is well.
create table webhook_url (
  destination_id int not null,
  url text not null,
  state text not null check (state in ('rejecting', 'held_tls', 'disabled')),
  reason text,
  status int,
  since timestamptz not null,
  -- When the next process may look whether the certificate is a good one now.
  probe_at timestamptz,
  primary key (destination_id, url)
);

-- What waits because no URL of its destination may be asked: taken oldest first when one may be again.
create index parked_held on parked (destination_id, next_at) where reason = 'breaker_open';
