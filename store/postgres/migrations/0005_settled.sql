-- What does not wait any more, by when it stopped: without it the list of what was decided
-- would sort all that ever was. It holds no decision that is pending, so asking does not
-- write to it. Nobody reads or writes the store while the migration runs, so the index is
-- built without CONCURRENTLY: about a second for a million decisions, which are all read once.
CREATE INDEX decision_settled ON decision(space, settled_at, id) WHERE status <> 'pending';

-- What waits by its sort, to be counted in the index alone: equal keys are stored once there,
-- so that a hundred thousand take less than a megabyte. A kind is a policy's word of any
-- length, and an index takes no more than 2,704 bytes: the few that are long have an index of
-- their own, and are counted in the table. The lock is as long.
CREATE INDEX decision_sorts ON decision(space, type, owner_kind, kind, tool)
  WHERE status = 'pending' AND open = 1 AND octet_length(kind) <= 200;
CREATE INDEX decision_sorts_long ON decision(space) WHERE status = 'pending' AND open = 1 AND octet_length(kind) > 200;

-- The index alone is enough only for pages that VACUUM has found to be all visible. By
-- default it comes once a fifth of the table has changed, which may be more than all that
-- waits. This keeps nobody from writing.
ALTER TABLE decision SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
