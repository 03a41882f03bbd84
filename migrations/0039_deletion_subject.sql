-- Where an id's profile was erased, for a back-fill that meets calls from before.
create index deletion_subject_hash on deletion_subject (hash) where hash is not null;
