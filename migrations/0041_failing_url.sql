-- URLs that fail by the share of their answers, as each process that sees it so says, and what operators know of it:
-- all rows of a URL are one episode, told once as failing and once as recovered, whichever processes die in between.
create table failing_url (
  destination_id int not null,
  url text not null,
  owner text not null,
  -- The highest share of failures, in percent, that was reached.
  level int not null,
  since timestamptz not null,
  -- When operators were last told that it fails; `null`: they were not.
  told_at timestamptz,
  primary key (destination_id, url, owner)
);

create index failing_url_owner on failing_url (owner);

-- Processes that own such rows: of one that does not say so for a minute another takes them over.
create table failing_watch (
  owner text primary key,
  seen_at timestamptz not null
);
