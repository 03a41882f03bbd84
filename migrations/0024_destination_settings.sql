-- What an operator may set for one destination and one URL beyond the specification's settings, and
-- where secrets are kept sealed: AES-256-GCM under a key that is never in the database.
alter table destination
  add column send_order text not null default 'user' check (send_order in ('user', 'none')),
  add column payload text not null default 'spec' check (payload in ('spec', 'full')),
  add column replay_on_heal boolean not null default false,
  -- Which headers are sent beside the specification's.
  add column sign_standard boolean not null default false,
  add column sign_sha256 boolean not null default false,
  add column sign_next boolean not null default false,
  -- The secret that signs from this instant on is in `sealed`.
  add column next_secret_at timestamptz,
  -- Sealed JSON; null: nothing secret, or not sealed yet, and then `shared_secret` holds it.
  add column sealed bytea,
  add constraint destination_sealed_whole check (sealed is null or shared_secret is null),
  add constraint destination_next_sealed check (next_secret_at is null or sealed is not null);

comment on column destination.shared_secret is 'plain text, of before secrets were sealed: null once sealed';

alter table webhook
  add column concurrency_max int check (concurrency_max > 0),
  add column requests_per_second_max double precision check (requests_per_second_max > 0),
  -- PEM: trusted beside the system's roots.
  add column ca text,
  -- PEM; its key is in `sealed`.
  add column client_certificate text,
  -- Sealed JSON: the values of `headers`, which then holds their names and null, and the certificate's key.
  add column sealed bytea,
  add constraint webhook_key_sealed check (client_certificate is null or sealed is not null);
