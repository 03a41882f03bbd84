-- Alerts on their way to the operator: written in the transaction of what they tell of, gone when they are taken.
create table alert_outbox (
  -- What is told, of whom: as in `operator_alert`.
  key text primary key,
  -- The event's own id, the same in every try: by it a receiver knows one that it gets twice.
  id uuid not null,
  type text not null,
  -- json keeps the order of fields, so that every try sends the same bytes.
  about json not null,
  -- Of messages given up: how many, counted for the first try.
  count bigint,
  at timestamptz not null,
  tries int not null default 0,
  -- The next try; while one is made, when others may make it.
  next_at timestamptz not null
);

create index alert_outbox_next on alert_outbox (next_at);
