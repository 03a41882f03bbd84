-- What a back-fill must not give to whoever came back under an id that was erased.

-- How far the projector had come in each partition ("topic/partition") when it erased the profile.
alter table deletion_subject add column passed jsonb;
create index deletion_subject_hash on deletion_subject (hash) where hash is not null;
