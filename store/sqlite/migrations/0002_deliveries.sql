-- Who wants to hear of which events. Adding a table locks nothing that is there.
CREATE TABLE wake_target(
  id           TEXT    PRIMARY KEY,
  space        TEXT    NOT NULL,
  kind         TEXT    NOT NULL CHECK (kind = 'webhook' OR kind = 'command' OR kind = 'relay'),
  stream       TEXT    NOT NULL, -- of the one root that it hears of; empty: of every root
  name         TEXT    NOT NULL,
  events       BLOB    NOT NULL, -- JSON
  principal    TEXT    NOT NULL,
  url          TEXT    NOT NULL,
  headers      BLOB,             -- JSON
  command      BLOB,             -- JSON
  secret       BLOB,
  old_secret   BLOB,
  old_until    INTEGER,
  max_attempts INTEGER NOT NULL CHECK (max_attempts > 0),
  retry_delay  INTEGER NOT NULL CHECK (retry_delay > 0), -- microseconds, as all that follow
  timeout      INTEGER NOT NULL CHECK (timeout > 0),
  max_age      INTEGER NOT NULL CHECK (max_age > 0),
  unordered    INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  disabled_at  INTEGER,
  disabled     TEXT    NOT NULL,
  removed_at   INTEGER,
  version      INTEGER NOT NULL,
  CHECK ((old_secret IS NULL) = (old_until IS NULL)),
  CHECK ((disabled_at IS NULL) = (disabled = ''))
) STRICT;

CREATE INDEX wake_target_hears ON wake_target(stream, space, id) WHERE disabled_at IS NULL AND removed_at IS NULL;
CREATE INDEX wake_target_listed ON wake_target(space, id) WHERE removed_at IS NULL;
CREATE INDEX wake_target_of ON wake_target(stream) WHERE stream > '';
CREATE INDEX wake_target_removed ON wake_target(id) WHERE removed_at IS NOT NULL;

-- One event for one target. due_at is when it may be claimed; NULL while it may not.
CREATE TABLE delivery(
  id           TEXT    PRIMARY KEY,
  space        TEXT    NOT NULL,
  target_id    TEXT    NOT NULL REFERENCES wake_target(id),
  pushed       INTEGER NOT NULL,
  ordered      INTEGER NOT NULL,
  seq          INTEGER NOT NULL, -- of the event
  stream       TEXT    NOT NULL,
  stream_seq   INTEGER NOT NULL CHECK (stream_seq > 0),
  type         TEXT    NOT NULL,
  subject      TEXT    NOT NULL,
  asks         INTEGER NOT NULL,
  status       TEXT    NOT NULL,
  attempts     INTEGER NOT NULL CHECK (attempts >= 0),
  due_at       INTEGER,
  message      TEXT    NOT NULL,
  out_of_order INTEGER NOT NULL,
  fence        INTEGER NOT NULL CHECK (fence >= 0),
  owner        TEXT    NOT NULL,
  try_at       INTEGER,          -- the last attempt, as one of delivery_attempt
  try_ended    INTEGER,
  try_outcome  TEXT CHECK (try_outcome = 'delivered' OR try_outcome = 'failed' OR try_outcome = 'refused' OR try_outcome = 'gone' OR try_outcome = 'reclaimed' OR try_outcome = 'released'),
  try_status   INTEGER NOT NULL,
  try_message  TEXT    NOT NULL,
  token        BLOB,
  lease_until  INTEGER,
  epoch        INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  gives_up_at  INTEGER NOT NULL,
  budget       INTEGER NOT NULL,
  ended_at     INTEGER,
  version      INTEGER NOT NULL,
  UNIQUE (seq, target_id), -- by seq, so that new ones come to its end
  CHECK (status = 'pending' OR status = 'dispatching' OR status = 'retrying' OR status = 'delivered' OR status = 'dead' OR status = 'dropped'),
  CHECK ((status = 'pending' OR status = 'dispatching' OR status = 'retrying') = (ended_at IS NULL)),
  CHECK ((status = 'dispatching') = (lease_until IS NOT NULL)),
  CHECK (due_at IS NULL OR status = 'pending' OR status = 'retrying'),
  CHECK (status <> 'dispatching' OR fence > 0 AND try_ended IS NULL),
  CHECK ((try_at IS NULL) = (fence = 0)),
  CHECK ((try_outcome IS NULL) = (try_ended IS NULL))
) STRICT;

-- Each delivery passes through these, so there are few, and most hold only what is open.
-- delivery_work holds all that may be claimed: an ordered one waits without due_at.
CREATE INDEX delivery_lane ON delivery(target_id, stream, stream_seq) WHERE ended_at IS NULL AND ordered = 1;
CREATE INDEX delivery_work ON delivery(pushed, target_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_lease ON delivery(lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX delivery_age ON delivery(gives_up_at) WHERE ended_at IS NULL;
CREATE INDEX delivery_asks ON delivery(id) WHERE asks = 1 AND ended_at IS NULL AND lease_until IS NULL;
CREATE INDEX delivery_failed ON delivery(space, status, id) WHERE status = 'dead' OR status = 'dropped';
CREATE INDEX delivery_of ON delivery(target_id, id);

-- One try at a delivery, once there is a later one: the last stands in the delivery, so
-- that what arrives at once needs no row here.
CREATE TABLE delivery_attempt(
  delivery_id TEXT    NOT NULL REFERENCES delivery(id),
  n           INTEGER NOT NULL CHECK (n > 0),
  owner       TEXT    NOT NULL,
  started_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL,
  outcome     TEXT    NOT NULL CHECK (outcome = 'delivered' OR outcome = 'failed' OR outcome = 'refused' OR outcome = 'gone' OR outcome = 'reclaimed' OR outcome = 'released'),
  status      INTEGER NOT NULL,
  message     TEXT    NOT NULL,
  PRIMARY KEY (delivery_id, n)
) STRICT, WITHOUT ROWID;

-- Rises with each change of targets, so that a process that keeps them in memory notices.
ALTER TABLE meta ADD COLUMN targets INTEGER NOT NULL DEFAULT 0;

-- A program that knows no wake targets would write events that nobody hears of.
UPDATE meta SET min_writer = 2 WHERE id = 1;
