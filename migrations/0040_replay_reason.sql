-- A replay may be of calls that are dead at its destination, for any of these reasons; null: of any calls.
alter table replay add column reasons text[];
