-- URLs that a process holds back by itself, breaker or limit, for operators to see: each process writes its
-- own, and what is missing here runs at full speed. Unlike `webhook_url`, nobody acts on it.
create unlogged table webhook_breaker (
  owner text not null,
  destination_id int not null,
  url text not null,
  breaker text not null check (breaker in ('closed', 'open', 'ramp')),
  -- Requests at a time that it gets now, and that it may get.
  limit_now int not null,
  limit_max int not null,
  reason text,
  status int,
  since timestamptz not null,
  told_at timestamptz not null,
  primary key (owner, destination_id, url)
);
