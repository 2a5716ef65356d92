-- A list of allowed words is spelt out with OR. SQLite makes a table of each IN
-- of three or more, anew for every row it writes: half of the writing's time.

-- One row about the store itself. schema: last step run. min_writer, min_reader:
-- oldest schema whose programs may still write, or read. epoch: which life of
-- the store this is. next_seq: number of the next event.
CREATE TABLE meta(
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  schema      INTEGER NOT NULL,
  min_writer  INTEGER NOT NULL,
  min_reader  INTEGER NOT NULL,
  store_id    TEXT    NOT NULL,
  epoch       INTEGER NOT NULL,
  next_seq    INTEGER NOT NULL,
  last_at     INTEGER NOT NULL,
  restored_at INTEGER,
  restored_to INTEGER
) STRICT;

-- Counts that limits are held against; changed with the rows they count.
CREATE TABLE counter(
  space TEXT    NOT NULL,
  name  TEXT    NOT NULL,
  n     INTEGER NOT NULL CHECK (n >= 0),
  PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;

-- The log. Bodies (actor, payload, salt) can be emptied, nothing else can change.
CREATE TABLE event(
  seq        INTEGER PRIMARY KEY,
  space      TEXT    NOT NULL,
  stream     TEXT    NOT NULL,
  stream_seq INTEGER NOT NULL CHECK (stream_seq > 0),
  id         TEXT    NOT NULL,
  v          INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  type       TEXT    NOT NULL,
  subject    TEXT    NOT NULL,
  actor      TEXT,
  payload    BLOB,
  salt       BLOB,
  body_hash  BLOB    NOT NULL,
  prev_hash  BLOB    NOT NULL,
  hash       BLOB    NOT NULL,
  UNIQUE (stream, stream_seq),
  CHECK ((payload IS NULL) = (salt IS NULL) AND (payload IS NULL) = (actor IS NULL))
) STRICT;

-- What is left of a stream that was cleaned up, so that it is told from one that was cut.
CREATE TABLE tombstone(
  stream   TEXT    PRIMARY KEY,
  space    TEXT    NOT NULL,
  head_seq INTEGER NOT NULL,
  head     BLOB    NOT NULL,
  at       INTEGER NOT NULL,
  by       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER event_update BEFORE UPDATE ON event
WHEN NOT (
  NEW.actor IS NULL AND NEW.payload IS NULL AND NEW.salt IS NULL
  AND NEW.seq = OLD.seq AND NEW.space = OLD.space AND NEW.stream = OLD.stream AND NEW.stream_seq = OLD.stream_seq
  AND NEW.id = OLD.id AND NEW.v = OLD.v AND NEW.at = OLD.at AND NEW.type = OLD.type AND NEW.subject = OLD.subject
  AND NEW.body_hash = OLD.body_hash AND NEW.prev_hash = OLD.prev_hash AND NEW.hash = OLD.hash)
BEGIN
  SELECT RAISE(ABORT, 'an event cannot be changed, only its body emptied');
END;

CREATE TRIGGER event_delete BEFORE DELETE ON event
WHEN NOT EXISTS (SELECT 1 FROM tombstone WHERE stream = OLD.stream)
BEGIN
  SELECT RAISE(ABORT, 'an event can be deleted only with its whole stream');
END;

-- One tool call. Unless it hangs below a run's step it is its own root: the head of
-- its stream lies in it then.
CREATE TABLE call(
  id               TEXT    PRIMARY KEY,
  space            TEXT    NOT NULL,
  run_id           TEXT    NOT NULL,
  own_run          INTEGER NOT NULL,
  step_id          TEXT    CHECK (step_id <> ''), -- of the run's step that it hangs below; NULL: it is its own root
  external_id      TEXT,
  tool             TEXT    NOT NULL,
  spec_digest      TEXT    NOT NULL,
  recovery         TEXT    NOT NULL DEFAULT '' CHECK (recovery IN ('', 'person', 'probe', 'key', 'probe+key')), -- as the tool declared it when it was parked or started last
  args             BLOB    NOT NULL,
  args_digest      TEXT    NOT NULL,
  principal        TEXT    NOT NULL,
  metadata         BLOB,
  continue_by      TEXT    NOT NULL CHECK (continue_by = 'caller' OR continue_by = 'daemon'),
  next_try_at      INTEGER,
  status           TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  message          TEXT    NOT NULL,
  result           BLOB,
  effective_digest TEXT    NOT NULL,
  approval_id      TEXT,
  approval_n       INTEGER NOT NULL,
  attempts         INTEGER NOT NULL,
  fence            INTEGER NOT NULL,
  lease_until      INTEGER,
  lease_owner      TEXT    NOT NULL,
  epoch            INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  ended_at         INTEGER,
  version          INTEGER NOT NULL,
  head_seq         INTEGER NOT NULL,
  head             BLOB,
  CHECK (status = 'pending' OR status = 'running' OR status = 'succeeded' OR status = 'failed'
    OR status = 'unknown' OR status = 'denied' OR status = 'expired' OR status = 'cancelled'),
  CHECK ((status = 'running') = (lease_until IS NOT NULL)),
  CHECK ((status = 'pending' OR status = 'running' OR status = 'unknown') = (ended_at IS NULL)),
  CHECK (status <> 'pending' OR approval_id IS NOT NULL),
  CHECK (status <> 'running' OR attempts > 0)
) STRICT;

CREATE UNIQUE INDEX call_external ON call(space, run_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX call_run ON call(space, run_id, id) WHERE step_id IS NULL;
CREATE INDEX call_running ON call(space, id) WHERE status = 'running' AND step_id IS NULL;
CREATE INDEX call_doubt ON call(space, id) WHERE continue_by = 'daemon' AND status = 'unknown';

-- An agent's run, or a flow's. The head of its stream lies in it.
CREATE TABLE run(
  id           TEXT    PRIMARY KEY,
  space        TEXT    NOT NULL,
  goal         TEXT    NOT NULL,
  limits       BLOB    NOT NULL, -- JSON
  agent        BLOB,             -- JSON: what makes its decisions
  flow         TEXT    NOT NULL,
  flow_version TEXT    NOT NULL,
  flow_digest  TEXT    NOT NULL,
  principal    TEXT    NOT NULL,
  metadata     BLOB,
  continue_by  TEXT    NOT NULL CHECK (continue_by = 'caller' OR continue_by = 'daemon'),
  next_try_at  INTEGER,
  status       TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  detail       TEXT    NOT NULL,
  result       BLOB,
  step_count   INTEGER NOT NULL CHECK (step_count >= 0),
  failures     INTEGER NOT NULL,
  repeats      INTEGER NOT NULL,
  last_digest  TEXT    NOT NULL,
  model_calls  INTEGER NOT NULL,
  tokens       INTEGER NOT NULL,
  cost         INTEGER NOT NULL, -- millionths
  active       INTEGER NOT NULL, -- microseconds of work, up to active_since
  active_since INTEGER,
  approval_id  TEXT,
  approval_n   INTEGER NOT NULL,
  fence        INTEGER NOT NULL CHECK (fence > 0),
  lease_until  INTEGER,
  lease_owner  TEXT    NOT NULL,
  epoch        INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  finished_at  INTEGER,
  version      INTEGER NOT NULL,
  head_seq     INTEGER NOT NULL,
  head         BLOB,
  CHECK (status = 'RUNNING' OR status = 'WAITING_FOR_APPROVAL' OR status = 'COMPLETED' OR status = 'FAILED' OR status = 'CANCELLED'),
  CHECK ((status = 'RUNNING' OR status = 'WAITING_FOR_APPROVAL') = (finished_at IS NULL)),
  CHECK ((status = 'RUNNING' OR status = 'WAITING_FOR_APPROVAL') = (reason = '')),
  CHECK (status = 'RUNNING' OR lease_until IS NULL),
  CHECK (status <> 'WAITING_FOR_APPROVAL' OR approval_id IS NOT NULL AND step_count > 0)
) STRICT;

CREATE INDEX run_running ON run(space, id) WHERE status = 'RUNNING';

-- One turn of a run. The result of its tool lies with its call.
CREATE TABLE step(
  run_id      TEXT    NOT NULL REFERENCES run(id),
  n           INTEGER NOT NULL CHECK (n > 0),
  id          TEXT    NOT NULL,
  status      TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  tool        TEXT    NOT NULL,
  args        BLOB,
  args_digest TEXT    NOT NULL,
  said        TEXT    NOT NULL,
  raw         BLOB,   -- the agent's whole answer, where it came as bytes
  node        TEXT    NOT NULL,
  ruling      BLOB,   -- JSON
  observation TEXT    NOT NULL,
  message     TEXT    NOT NULL,
  call_id     TEXT    REFERENCES call(id),
  approval_id TEXT,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER,
  version     INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (run_id, n),
  CHECK (status = 'deciding' OR status = 'awaiting_approval' OR status = 'executing' OR status = 'done' OR status = 'failed' OR status = 'interrupted'),
  CHECK ((status = 'done' OR status = 'failed') <= (finished_at IS NOT NULL)),
  CHECK (status <> 'awaiting_approval' OR approval_id IS NOT NULL)
) STRICT;

-- A supervised command. The head of its stream lies in it. Its spec is never searched;
-- the values of its secrets are kept until it has begun.
CREATE TABLE job(
  id              TEXT    PRIMARY KEY,
  space           TEXT    NOT NULL,
  home            TEXT    NOT NULL, -- folder of its launches
  name            TEXT    NOT NULL,
  spec            BLOB    NOT NULL, -- JSON
  secrets         BLOB,             -- JSON
  principal       TEXT    NOT NULL,
  idempotency_key TEXT,
  request         TEXT    NOT NULL, -- digest of what was asked for
  status          TEXT    NOT NULL,
  paused          INTEGER NOT NULL CHECK (paused = 0 OR paused = 1),
  launches        INTEGER NOT NULL CHECK (launches >= 0),
  claim           TEXT    NOT NULL,
  launcher        TEXT    NOT NULL,
  began_at        INTEGER,          -- of the claim
  runner          TEXT    NOT NULL,
  stop_by         TEXT    NOT NULL,
  stop_at         INTEGER,
  kill_after      INTEGER NOT NULL CHECK (kill_after >= 0),
  exit_code       INTEGER NOT NULL,
  signal          TEXT    NOT NULL,
  failure         TEXT    NOT NULL,
  progress        BLOB,             -- JSON
  outputs         INTEGER NOT NULL CHECK (outputs >= 0),
  dropped         INTEGER NOT NULL CHECK (dropped = 0 OR dropped = 1),
  event_offset    INTEGER NOT NULL CHECK (event_offset >= 0),
  pending         INTEGER NOT NULL CHECK (pending >= 0 AND pending <= questions),
  questions       INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,
  ended_at        INTEGER,
  cleaned_at      INTEGER,
  epoch           INTEGER NOT NULL, -- life of the store in which it was queued or resumed
  version         INTEGER NOT NULL,
  head_seq        INTEGER NOT NULL,
  head            BLOB,
  CHECK (status = 'queued' OR status = 'launching' OR status = 'running' OR status = 'completed' OR status = 'failed'
    OR status = 'timeout' OR status = 'cancelled' OR status = 'orphaned'),
  CHECK ((status = 'queued' OR status = 'launching' OR status = 'running') = (ended_at IS NULL)),
  CHECK (status <> 'launching' AND status <> 'running' OR claim <> ''),
  CHECK (status <> 'running' OR started_at IS NOT NULL AND runner <> ''),
  CHECK (status = 'queued' OR paused = 0),
  CHECK (secrets IS NULL OR status = 'queued' OR status = 'launching'),
  CHECK (ended_at IS NULL OR pending = 0),
  CHECK (cleaned_at IS NULL OR ended_at IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX job_key ON job(space, principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_started ON job(space, principal, id);
CREATE INDEX job_active ON job(home, id) WHERE ended_at IS NULL;
CREATE INDEX job_ended ON job(space, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX job_asking ON job(space, id) WHERE pending > 0;
CREATE INDEX job_status ON job(space, status, cleaned_at, id);
CREATE INDEX job_cleaned ON job(home, id) WHERE cleaned_at IS NOT NULL;

-- One try at carrying a call out. Written before the tool is called.
CREATE TABLE attempt(
  call_id          TEXT    NOT NULL REFERENCES call(id),
  n                INTEGER NOT NULL CHECK (n > 0),
  fence            INTEGER NOT NULL,
  epoch            INTEGER NOT NULL,
  approval_id      TEXT,
  grant_digest     TEXT    NOT NULL,
  effective_digest TEXT    NOT NULL,
  args             BLOB,
  owner            TEXT    NOT NULL,
  recovery         TEXT    NOT NULL,
  started_at       INTEGER NOT NULL,
  ended_at         INTEGER,
  outcome          TEXT    CHECK (outcome = 'succeeded' OR outcome = 'failed' OR outcome = 'unknown'),
  kind             TEXT    NOT NULL,
  message          TEXT    NOT NULL,
  late             INTEGER NOT NULL,
  PRIMARY KEY (call_id, n),
  CHECK ((outcome IS NULL) = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

-- A question to people and its answer. Two types, one table: an approval is
-- bound by digest to one request; a question has prompt, options and form.
CREATE TABLE decision(
  id                TEXT    PRIMARY KEY,
  space             TEXT    NOT NULL,
  type              TEXT    NOT NULL CHECK (type = 'approval' OR type = 'question'),
  owner_kind        TEXT    NOT NULL CHECK (owner_kind = 'call' OR owner_kind = 'run' OR owner_kind = 'job'),
  owner_id          TEXT    NOT NULL,
  n                 INTEGER NOT NULL CHECK (n > 0),
  kind              TEXT    NOT NULL,
  capability        BLOB,
  presentation      BLOB,
  request           BLOB,
  digest            TEXT    NOT NULL,
  spec_digest       TEXT    NOT NULL,
  args_digest       TEXT    NOT NULL,
  spent_digest      TEXT    NOT NULL,
  reason            TEXT    NOT NULL,
  forbid_edits      INTEGER NOT NULL,
  prompt            BLOB,
  options           BLOB,
  form              BLOB,
  idempotency_key   TEXT,
  run_id            TEXT    NOT NULL,
  call_id           TEXT    NOT NULL,
  step_id           TEXT    NOT NULL,
  node              TEXT    NOT NULL,
  tool              TEXT    NOT NULL,
  requested_by      TEXT    NOT NULL,
  metadata          BLOB,
  created_at        INTEGER NOT NULL,
  expires_at        INTEGER,
  grant_ttl         INTEGER NOT NULL CHECK (grant_ttl >= 0),
  status            TEXT    NOT NULL DEFAULT 'pending',
  open              INTEGER NOT NULL DEFAULT 1,
  needs             INTEGER NOT NULL CHECK (needs > 0),
  choice            TEXT    NOT NULL DEFAULT '',
  input             BLOB,
  decided_by        TEXT    NOT NULL DEFAULT '',
  decided_principal TEXT    NOT NULL DEFAULT '',
  decided_at        INTEGER,
  verified          INTEGER NOT NULL DEFAULT 0,
  note              TEXT    NOT NULL DEFAULT '',
  edited_args       BLOB,
  edited_digest     TEXT    NOT NULL DEFAULT '',
  effective_digest  TEXT    NOT NULL DEFAULT '',
  grant_expires_at  INTEGER,
  epoch             INTEGER NOT NULL,
  settled_at        INTEGER,
  consumed_at       INTEGER,
  consumed_by       INTEGER NOT NULL DEFAULT 0,
  due_at            INTEGER, -- when it has to expire, while it still can
  version           INTEGER NOT NULL DEFAULT 1,
  withdrawn_by        TEXT  NOT NULL DEFAULT '', -- who took it back
  withdrawn_principal TEXT  NOT NULL DEFAULT '',
  UNIQUE (owner_kind, owner_id, n),
  CHECK (status = 'pending' OR status = 'approved' OR status = 'rejected' OR status = 'consumed' OR status = 'expired'
    OR status = 'withdrawn' OR status = 'superseded' OR status = 'resolved'),
  CHECK ((status = 'pending') = (settled_at IS NULL)),
  CHECK ((decided_at IS NULL) = (choice = '')),
  CHECK ((choice = '') = (decided_by = '')),
  CHECK (choice <> '' OR status <> 'approved' AND status <> 'rejected' AND status <> 'consumed' AND status <> 'resolved'),
  CHECK (status <> 'approved' OR choice = 'approve'),
  CHECK (status <> 'rejected' OR choice = 'reject'),
  CHECK ((status = 'consumed') = (consumed_at IS NOT NULL)),
  CHECK ((edited_args IS NULL) = (edited_digest = '')),
  CHECK (status = 'withdrawn' OR status = 'superseded' OR withdrawn_by = '' AND withdrawn_principal = '')
) STRICT;

CREATE INDEX decision_pending ON decision(space, id) WHERE status = 'pending';
CREATE UNIQUE INDEX decision_key ON decision(owner_kind, owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX decision_due ON decision(due_at) WHERE due_at IS NOT NULL;
CREATE INDEX decision_granted ON decision(space, owner_kind, owner_id) WHERE status = 'approved';
CREATE INDEX decision_moot ON decision(space, owner_kind, owner_id) WHERE kind = 'interrupted_side_effect' AND status IN ('withdrawn', 'superseded');

-- One person's answer. With needs = 1 the first settles.
CREATE TABLE vote(
  decision_id   TEXT    NOT NULL REFERENCES decision(id),
  principal     TEXT    NOT NULL,
  by            TEXT    NOT NULL,
  choice        TEXT    NOT NULL,
  input         BLOB,
  shown         TEXT    NOT NULL,
  edited_digest TEXT    NOT NULL,
  note          TEXT    NOT NULL,
  at            INTEGER NOT NULL,
  PRIMARY KEY (decision_id, principal)
) STRICT, WITHOUT ROWID;

-- Counters of guards that span calls.
CREATE TABLE guard(
  space  TEXT    NOT NULL,
  run_id TEXT    NOT NULL,
  name   TEXT    NOT NULL,
  key    TEXT    NOT NULL,
  n      INTEGER NOT NULL,
  since  INTEGER,
  PRIMARY KEY (space, run_id, name, key)
) STRICT, WITHOUT ROWID;

-- Keys by which a client repeats a request without repeating its effect.
CREATE TABLE idempotency(
  space     TEXT    NOT NULL,
  principal TEXT    NOT NULL,
  route     TEXT    NOT NULL,
  key       TEXT    NOT NULL,
  request   TEXT    NOT NULL, -- digest of what was asked for
  call_id   TEXT    NOT NULL,
  attempt   INTEGER NOT NULL, -- that the request started; 0: none
  at        INTEGER NOT NULL,
  PRIMARY KEY (space, principal, route, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_at ON idempotency(at);

-- Who may speak to the daemon. The secret itself is nowhere.
CREATE TABLE token(
  id         TEXT    PRIMARY KEY,
  space      TEXT    NOT NULL,
  scope      TEXT    NOT NULL CHECK (scope = 'agent' OR scope = 'reviewer' OR scope = 'operator' OR scope = 'admin'),
  name       TEXT    NOT NULL,
  principal  TEXT    NOT NULL,
  job_id     TEXT    CHECK (job_id IS NULL OR job_id <> '' AND scope = 'agent'),
  hash       BLOB    NOT NULL CHECK (length(hash) = 32),
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX token_good ON token(space, principal, id) WHERE revoked_at IS NULL;
CREATE INDEX token_job ON token(job_id) WHERE job_id IS NOT NULL;
