-- Who asked for a user to be deleted, and how far that is: by a call with a source's secret key, which the
-- projector enters in the transaction of its batch, or by an operator.
create table deletion_request (
  id int generated always as identity primary key,
  workspace_id int not null,
  -- Of a call only.
  source_id int,
  message_id text,
  user_id text,
  anonymous_id text,
  origin text not null check (origin in ('call', 'api')),
  state text not null default 'received' check (state in ('received')),
  -- Of a call: when it was received.
  created_at timestamptz not null,
  check (user_id is not null or anonymous_id is not null),
  check ((origin = 'call') = (source_id is not null and message_id is not null))
);
-- A call is entered once; two users whose calls share a message id are two requests.
create unique index deletion_request_call on deletion_request
  (workspace_id, source_id, message_id, coalesce(user_id, ''), coalesce(anonymous_id, ''))
  where origin = 'call';
create index deletion_request_newest on deletion_request (workspace_id, id);
