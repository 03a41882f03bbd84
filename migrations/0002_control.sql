-- What operators configure. Every change bumps one version in its own transaction and notifies, so
-- that every process can swap its snapshot whole.
create table configuration_version (
  only_row boolean primary key default true check (only_row),
  version bigint not null
);
insert into configuration_version (version) values (1);

create table workspace (
  id int generated always as identity primary key,
  name text not null unique,
  regional_access boolean not null default false
);

create table source (
  id int generated always as identity primary key,
  workspace_id int not null references workspace,
  name text not null,
  class text not null check (class in ('web', 'mobile', 'server')),
  write_key text not null unique,
  -- SHA-256; the secret key itself is shown once and never stored.
  secret_key_hash bytea not null unique,
  enabled boolean not null default true,
  unique (workspace_id, name)
);

create table destination (
  id int generated always as identity primary key,
  workspace_id int not null references workspace,
  name text not null,
  type text not null check (type in ('webhook')),
  enabled boolean not null default true,
  shared_secret text,
  historical boolean not null default true,
  historical_after_ms bigint not null default 86400000 check (historical_after_ms >= 0),
  unique (workspace_id, name)
);

-- `headers` is json, not jsonb: the order the operator wrote is the order sent.
create table webhook (
  destination_id int not null references destination on delete cascade,
  place smallint not null check (place between 1 and 5),
  url text not null,
  headers json not null,
  primary key (destination_id, place)
);

create table destination_source (
  destination_id int not null references destination on delete cascade,
  source_id int not null references source on delete cascade,
  primary key (destination_id, source_id)
);
create index destination_source_source on destination_source (source_id);

create table audience (
  id int generated always as identity primary key,
  workspace_id int not null references workspace,
  name text not null,
  key text not null,
  -- JSON as saved, in text: jsonb would reorder it and refuse lone surrogates.
  condition text not null,
  sync_every_ms bigint not null check (sync_every_ms >= 60000),
  unique (workspace_id, name),
  unique (workspace_id, key)
);

-- Keys outlive their audience: receivers still hold the property, and a second audience under the
-- same key would never tell them that the first one's members have left.
create table audience_key (
  workspace_id int not null references workspace on delete cascade,
  key text not null,
  primary key (workspace_id, key)
);

create table audience_destination (
  audience_id int not null references audience on delete cascade,
  destination_id int not null references destination on delete cascade,
  primary key (audience_id, destination_id)
);
create index audience_destination_destination on audience_destination (destination_id);

create table admin_token (
  id int generated always as identity primary key,
  name text not null unique,
  role text not null check (role in ('admin', 'viewer')),
  hash bytea not null unique,
  created_at timestamptz not null default clock_timestamp()
);

create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- The name of the token, or of the start-up step, that acted.
  actor text not null,
  action text not null,
  kind text not null,
  entity_id int,
  name text not null,
  -- The fields that changed; values only where they are no secret.
  changes json not null
);

create function configuration_changed() returns trigger language plpgsql as $$
declare next_version bigint;
begin
  update configuration_version set version = version + 1 returning version into next_version;
  perform pg_notify('configuration', next_version::text);
  return null;
end $$;

create trigger configuration_changed after insert or update or delete or truncate on workspace
  for each statement execute function configuration_changed();
create trigger configuration_changed after insert or update or delete or truncate on source
  for each statement execute function configuration_changed();
create trigger configuration_changed after insert or update or delete or truncate on destination
  for each statement execute function configuration_changed();
create trigger configuration_changed after insert or update or delete or truncate on webhook
  for each statement execute function configuration_changed();
create trigger configuration_changed after insert or update or delete or truncate on destination_source
  for each statement execute function configuration_changed();
create trigger configuration_changed after insert or update or delete or truncate on audience
  for each statement execute function configuration_changed();
create trigger configuration_changed after insert or update or delete or truncate on audience_destination
  for each statement execute function configuration_changed();
