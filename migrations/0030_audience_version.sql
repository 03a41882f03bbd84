-- How definitions of audiences and computed traits came to be, and how many users they had.

-- Written in the transaction that saves the definition; the oldest go when there are too many.
create table audience_version (
  audience_id int not null references audience on delete cascade,
  version int not null,
  at timestamptz not null default clock_timestamp(),
  -- The name of the token, or of the start-up step, that saved it.
  actor text not null,
  -- All that was saved, and of it what is other than in the version before.
  definition json not null,
  changes json not null,
  primary key (audience_id, version)
);

-- What was saved before there were versions: as it is now, by whom it was last changed.
insert into audience_version (audience_id, version, at, actor, definition, changes)
select a.id, 1, coalesce(l.at, 'epoch'), coalesce(l.actor, 'unknown'),
       json_build_object('name', a.name, 'key', a.key, 'where', a.condition, 'timezone', a.timezone,
         'includeAnonymous', a.include_anonymous, 'retractOnDelete', a.retract_on_delete,
         'entryEvents', a.entry_events),
       '{}'
  from audience a
  left join lateral (
    select l.at, l.actor from audit_log l
     where l.entity_id = a.id and l.kind = a.kind order by l.id desc limit 1) l on true;

-- At the end of each sync: users in it, and those of them without a user id.
create table audience_size (
  audience_id int not null,
  run_id bigint not null,
  at timestamptz not null,
  members int not null,
  anonymous int not null,
  primary key (audience_id, run_id)
);
