-- What an operator may set beyond a name and keys; absent fields have the defaults of domain/configuration.ts.
alter table workspace add column grandfathered boolean not null default false;

-- json, not jsonb: a tracking plan keeps the order it was written in.
alter table source add column settings json not null default '{}';

alter table destination add column filters json not null default '[]';
