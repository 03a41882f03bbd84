-- How many users each audience has, kept as memberships change: a sync reads what changed since the
-- last one, and never all members.

-- Members of the last sync's end; what changed since stands in membership_change.
create table membership_count (
  audience_id int primary key,
  members int not null,
  anonymous int not null
) with (fillfactor = 50);

-- One row for each statement and audience that it changed, in the transaction of that statement: nobody
-- waits for a row, and none is lost or counted twice.
create table membership_change (
  audience_id int not null,
  members int not null,
  anonymous int not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create function membership_added() returns trigger language plpgsql as $$
begin
  insert into membership_change (audience_id, members, anonymous)
  select audience_id, count(*), count(*) filter (where user_id is null)
    from added where cur group by audience_id;
  return null;
end $$;

create function membership_removed() returns trigger language plpgsql as $$
begin
  insert into membership_change (audience_id, members, anonymous)
  select audience_id, -count(*), -count(*) filter (where user_id is null)
    from removed where cur group by audience_id;
  return null;
end $$;

create function membership_changed() returns trigger language plpgsql as $$
begin
  insert into membership_change (audience_id, members, anonymous)
  select audience_id, sum(member), coalesce(sum(member) filter (where user_id is null), 0)
    from (select audience_id, user_id, 1 as member from added where cur
          union all select audience_id, user_id, -1 from removed where cur) m
   group by audience_id
  having sum(member) <> 0 or sum(member) filter (where user_id is null) <> 0;
  return null;
end $$;

create function membership_emptied() returns trigger language plpgsql as $$
begin
  delete from membership_change;
  delete from membership_count;
  return null;
end $$;

-- Also for a table that came into the place of another: it is watched from here on, and counted.
create function watch_membership() returns void language plpgsql as $$
begin
  create or replace trigger membership_added after insert on membership
    referencing new table as added for each statement execute function membership_added();
  create or replace trigger membership_removed after delete on membership
    referencing old table as removed for each statement execute function membership_removed();
  create or replace trigger membership_changed after update on membership
    referencing old table as removed new table as added
    for each statement execute function membership_changed();
  create or replace trigger membership_emptied after truncate on membership
    for each statement execute function membership_emptied();
  -- The triggers keep everybody from writing until all is counted.
  delete from membership_change;
  delete from membership_count;
  insert into membership_count (audience_id, members, anonymous)
  select audience_id, count(*), count(*) filter (where user_id is null)
    from membership where cur group by audience_id;
end $$;

select watch_membership();
