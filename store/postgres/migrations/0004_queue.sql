-- What waits for people, in the order in which it expires and with all that it is picked by;
-- kind is a policy's word of any length, and an index takes no more than 2,704 bytes. It
-- holds what is pending only. Nobody reads or writes the store while the migration runs, so
-- the index is built without CONCURRENTLY, which no transaction may use: about a second for
-- a million decisions, which are all read once.
CREATE INDEX decision_queue ON decision(
    space, coalesce(expires_at, 9223372036854775807), id, type, owner_kind, substr(kind, 1, 100), tool, created_at)
  WHERE status = 'pending' AND open = 1;

-- What was approved of each tool, the newest of which is shown beside the next request.
-- The lock is as long.
CREATE INDEX decision_approved ON decision(space, tool, id)
  WHERE choice = 'approve' AND type = 'approval' AND tool <> '' AND kind <> 'interrupted_side_effect';

-- Browsers whose holders showed a token. The key is a hash of what the browser holds. Adding
-- a table locks nothing that is there.
CREATE TABLE sign_in(
  key        text COLLATE "C"    PRIMARY KEY CHECK (key <> ''),
  space      text COLLATE "C"    NOT NULL,
  token_id   text COLLATE "C"    NOT NULL,
  data       bytea,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  epoch      bigint NOT NULL -- life of the store in which it was written; in a later one it is void
);

CREATE INDEX sign_in_over ON sign_in(epoch, expires_at);
CREATE INDEX sign_in_of ON sign_in(token_id);
