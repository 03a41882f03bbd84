-- What a sync does beside telling of changes: full membership for a destination that joins, events of
-- entering and leaving, and taking back what a deleted audience had said.

alter table audience
  add column retract_on_delete boolean not null default false,
  add column entry_events boolean not null default false;

alter table outbox add column type text not null default 'identify';

-- The destinations that know an audience's members; one that is not here is told of them all first.
create table sync_destination (
  audience_id int not null,
  destination_id int not null,
  -- The last user it was told of; null once it was told of all.
  after bigint,
  primary key (audience_id, destination_id)
);
insert into sync_destination (audience_id, destination_id)
select s.audience_id, d.destination_id
  from sync_schedule s join audience_destination d on d.audience_id = s.audience_id;

-- Audiences that are gone, and whose members are yet to be told so.
create table retraction (
  audience_id int primary key,
  workspace_id int not null,
  kind text not null,
  key text not null,
  destination_ids int[] not null
);
