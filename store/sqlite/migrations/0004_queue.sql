-- When a decision expires, and behind all that do where it never does: of an expression in
-- its place an index would be read from its beginning for every page. It takes no room, and
-- no row is touched. PostgreSQL needs no column for it.
ALTER TABLE decision ADD COLUMN queue_at INTEGER GENERATED ALWAYS AS (coalesce(expires_at, 9223372036854775807)) VIRTUAL;

-- What waits for people, in the order in which it expires and with all that it is picked by.
-- It holds what is pending only. The file is locked while the index is built: about a second
-- for a million decisions, which are all read once.
CREATE INDEX decision_queue ON decision(space, queue_at, id, type, owner_kind, kind, tool, created_at)
  WHERE status = 'pending' AND open = 1;

-- The same by its sort, to be counted: SQLite would sort all of it for each count, which
-- PostgreSQL does not have to. The lock is as long.
CREATE INDEX decision_sorts ON decision(space, type, owner_kind, kind, tool) WHERE status = 'pending' AND open = 1;

-- What was approved of each tool, the newest of which is shown beside the next request.
-- The lock is as long.
CREATE INDEX decision_approved ON decision(space, tool, id)
  WHERE choice = 'approve' AND type = 'approval' AND tool <> '' AND kind <> 'interrupted_side_effect';

-- Browsers whose holders showed a token. The key is a hash of what the browser holds. Adding
-- a table locks nothing that is there.
CREATE TABLE sign_in(
  key        TEXT    PRIMARY KEY CHECK (key <> ''),
  space      TEXT    NOT NULL,
  token_id   TEXT    NOT NULL,
  data       BLOB,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  epoch      INTEGER NOT NULL -- life of the store in which it was written; in a later one it is void
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_over ON sign_in(epoch, expires_at);
CREATE INDEX sign_in_of ON sign_in(token_id);
