-- Text is compared byte by byte: ids sort by time, and a page goes on behind one.
-- Truth values are 0 and 1, times microseconds, as in every backend.

-- One row about the store itself. schema: last step run. min_writer, min_reader:
-- oldest schema whose programs may still write, or read. epoch: which life of
-- the store this is. The last four say in which server, and which life of its, the
-- store lies: where they differ it went back in time, or is another one.
-- Whoever writes has read this row first, and so holds a lock on the table until its
-- end: LOCK TABLE meta waits for all of them, and keeps new ones out.
CREATE TABLE meta(
  id           bigint PRIMARY KEY CHECK (id = 1),
  schema       bigint NOT NULL,
  min_writer   bigint NOT NULL,
  min_reader   bigint NOT NULL,
  store_id     text COLLATE "C" NOT NULL,
  epoch        bigint NOT NULL,
  restored_at  bigint,
  restored_to  bigint,
  system_id    text COLLATE "C" NOT NULL,
  timeline     bigint NOT NULL,
  database_oid bigint NOT NULL,
  table_oid    bigint NOT NULL -- of this table
);

-- Counts that limits are held against; changed with the rows they count. A count is the
-- sum of its slots, so that those who change it seldom wait for each other.
CREATE TABLE counter(
  space text COLLATE "C" NOT NULL,
  name  text COLLATE "C" NOT NULL,
  slot  bigint NOT NULL,
  n     bigint NOT NULL,
  PRIMARY KEY (space, name, slot)
) WITH (fillfactor = 50);

CREATE SEQUENCE event_seq;

-- The last place in the public order of events that was given.
CREATE TABLE event_order(
  id   bigint PRIMARY KEY CHECK (id = 1),
  last bigint NOT NULL
);
INSERT INTO event_order VALUES (1, 0);

-- The log. Bodies (actor, payload, salt) can be emptied, and an event gets its place
-- among all (pos) once after its commit; nothing else can change.
CREATE TABLE event(
  seq        bigint PRIMARY KEY DEFAULT nextval('event_seq'),
  pos        bigint CHECK (pos > 0),
  space      text COLLATE "C"    NOT NULL,
  stream     text COLLATE "C"    NOT NULL,
  stream_seq bigint NOT NULL CHECK (stream_seq > 0),
  id         text COLLATE "C"    NOT NULL,
  v          bigint NOT NULL,
  at         bigint NOT NULL,
  type       text COLLATE "C"    NOT NULL,
  subject    text COLLATE "C"    NOT NULL,
  actor      text COLLATE "C",
  payload    bytea,
  salt       bytea,
  body_hash  bytea    NOT NULL,
  prev_hash  bytea    NOT NULL,
  hash       bytea    NOT NULL,
  UNIQUE (stream, stream_seq),
  CHECK ((payload IS NULL) = (salt IS NULL) AND (payload IS NULL) = (actor IS NULL))
);

-- What is left of a stream that was cleaned up, so that it is told from one that was cut.
CREATE TABLE tombstone(
  stream   text COLLATE "C"    PRIMARY KEY,
  space    text COLLATE "C"    NOT NULL,
  head_seq bigint NOT NULL,
  head     bytea    NOT NULL,
  at       bigint NOT NULL,
  by       text COLLATE "C"    NOT NULL
);

CREATE UNIQUE INDEX event_pos ON event(pos) WHERE pos IS NOT NULL;
CREATE INDEX event_new ON event(seq) WHERE pos IS NULL;

CREATE FUNCTION event_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.seq = OLD.seq AND NEW.space = OLD.space AND NEW.stream = OLD.stream AND NEW.stream_seq = OLD.stream_seq
    AND NEW.id = OLD.id AND NEW.v = OLD.v AND NEW.at = OLD.at AND NEW.type = OLD.type AND NEW.subject = OLD.subject
    AND NEW.body_hash = OLD.body_hash AND NEW.prev_hash = OLD.prev_hash AND NEW.hash = OLD.hash
    AND (OLD.pos IS NULL OR NEW.pos = OLD.pos)
    AND (NEW.actor IS NULL AND NEW.payload IS NULL AND NEW.salt IS NULL
      OR NEW.actor = OLD.actor AND NEW.payload = OLD.payload AND NEW.salt = OLD.salt)
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'an event cannot be changed, only its body emptied';
END $$;
CREATE TRIGGER event_update BEFORE UPDATE ON event FOR EACH ROW EXECUTE FUNCTION event_kept();

CREATE FUNCTION event_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM tombstone WHERE stream = OLD.stream) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'an event can be deleted only with its whole stream';
END $$;
CREATE TRIGGER event_delete BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION event_stays();

-- One tool call. Unless it hangs below a run's step it is its own root: the head of
-- its stream lies in it then.
CREATE TABLE call(
  id               text COLLATE "C"    PRIMARY KEY,
  space            text COLLATE "C"    NOT NULL,
  run_id           text COLLATE "C"    NOT NULL,
  own_run          bigint NOT NULL,
  step_id          text COLLATE "C"    CHECK (step_id <> ''), -- of the run's step that it hangs below; NULL: it is its own root
  external_id      text COLLATE "C",
  tool             text COLLATE "C"    NOT NULL,
  spec_digest      text COLLATE "C"    NOT NULL,
  recovery         text COLLATE "C"    NOT NULL DEFAULT '' CHECK (recovery IN ('', 'person', 'probe', 'key', 'probe+key')), -- as the tool declared it when it was parked or started last
  args             bytea    NOT NULL,
  args_digest      text COLLATE "C"    NOT NULL,
  principal        text COLLATE "C"    NOT NULL,
  metadata         bytea,
  continue_by      text COLLATE "C"    NOT NULL CHECK (continue_by = 'caller' OR continue_by = 'daemon'),
  next_try_at      bigint,
  status           text COLLATE "C"    NOT NULL,
  kind             text COLLATE "C"    NOT NULL,
  message          text COLLATE "C"    NOT NULL,
  result           bytea,
  effective_digest text COLLATE "C"    NOT NULL,
  approval_id      text COLLATE "C",
  approval_n       bigint NOT NULL,
  attempts         bigint NOT NULL,
  fence            bigint NOT NULL,
  lease_until      bigint,
  lease_owner      text COLLATE "C"    NOT NULL,
  epoch            bigint NOT NULL,
  created_at       bigint NOT NULL,
  ended_at         bigint,
  version          bigint NOT NULL,
  head_seq         bigint NOT NULL,
  head             bytea,
  CHECK (status = 'pending' OR status = 'running' OR status = 'succeeded' OR status = 'failed'
    OR status = 'unknown' OR status = 'denied' OR status = 'expired' OR status = 'cancelled'),
  CHECK ((status = 'running') = (lease_until IS NOT NULL)),
  CHECK ((status = 'pending' OR status = 'running' OR status = 'unknown') = (ended_at IS NULL)),
  CHECK (status <> 'pending' OR approval_id IS NOT NULL),
  CHECK (status <> 'running' OR attempts > 0)
);

CREATE UNIQUE INDEX call_external ON call(space, run_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX call_run ON call(space, run_id, id) WHERE step_id IS NULL;
CREATE INDEX call_running ON call(space, id) WHERE status = 'running' AND step_id IS NULL;
CREATE INDEX call_doubt ON call(space, id) WHERE continue_by = 'daemon' AND status = 'unknown';

-- An agent's run, or a flow's. The head of its stream lies in it.
CREATE TABLE run(
  id           text COLLATE "C"    PRIMARY KEY,
  space        text COLLATE "C"    NOT NULL,
  goal         text COLLATE "C"    NOT NULL,
  limits       bytea    NOT NULL, -- JSON
  agent        bytea,             -- JSON: what makes its decisions
  flow         text COLLATE "C"    NOT NULL,
  flow_version text COLLATE "C"    NOT NULL,
  flow_digest  text COLLATE "C"    NOT NULL,
  principal    text COLLATE "C"    NOT NULL,
  metadata     bytea,
  continue_by  text COLLATE "C"    NOT NULL CHECK (continue_by = 'caller' OR continue_by = 'daemon'),
  next_try_at  bigint,
  status       text COLLATE "C"    NOT NULL,
  reason       text COLLATE "C"    NOT NULL,
  detail       text COLLATE "C"    NOT NULL,
  result       bytea,
  step_count   bigint NOT NULL CHECK (step_count >= 0),
  failures     bigint NOT NULL,
  repeats      bigint NOT NULL,
  last_digest  text COLLATE "C"    NOT NULL,
  model_calls  bigint NOT NULL,
  tokens       bigint NOT NULL,
  cost         bigint NOT NULL, -- millionths
  active       bigint NOT NULL, -- microseconds of work, up to active_since
  active_since bigint,
  approval_id  text COLLATE "C",
  approval_n   bigint NOT NULL,
  fence        bigint NOT NULL CHECK (fence > 0),
  lease_until  bigint,
  lease_owner  text COLLATE "C"    NOT NULL,
  epoch        bigint NOT NULL,
  created_at   bigint NOT NULL,
  finished_at  bigint,
  version      bigint NOT NULL,
  head_seq     bigint NOT NULL,
  head         bytea,
  CHECK (status = 'RUNNING' OR status = 'WAITING_FOR_APPROVAL' OR status = 'COMPLETED' OR status = 'FAILED' OR status = 'CANCELLED'),
  CHECK ((status = 'RUNNING' OR status = 'WAITING_FOR_APPROVAL') = (finished_at IS NULL)),
  CHECK ((status = 'RUNNING' OR status = 'WAITING_FOR_APPROVAL') = (reason = '')),
  CHECK (status = 'RUNNING' OR lease_until IS NULL),
  CHECK (status <> 'WAITING_FOR_APPROVAL' OR approval_id IS NOT NULL AND step_count > 0)
);

CREATE INDEX run_running ON run(space, id) WHERE status = 'RUNNING';

-- One turn of a run. The result of its tool lies with its call.
CREATE TABLE step(
  run_id      text COLLATE "C"    NOT NULL REFERENCES run(id),
  n           bigint NOT NULL CHECK (n > 0),
  id          text COLLATE "C"    NOT NULL,
  status      text COLLATE "C"    NOT NULL,
  kind        text COLLATE "C"    NOT NULL,
  tool        text COLLATE "C"    NOT NULL,
  args        bytea,
  args_digest text COLLATE "C"    NOT NULL,
  said        text COLLATE "C"    NOT NULL,
  raw         bytea,   -- the agent's whole answer, where it came as bytes
  node        text COLLATE "C"    NOT NULL,
  ruling      bytea,   -- JSON
  observation text COLLATE "C"    NOT NULL,
  message     text COLLATE "C"    NOT NULL,
  call_id     text COLLATE "C"    REFERENCES call(id),
  approval_id text COLLATE "C",
  started_at  bigint NOT NULL,
  finished_at bigint,
  version     bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (run_id, n),
  CHECK (status = 'deciding' OR status = 'awaiting_approval' OR status = 'executing' OR status = 'done' OR status = 'failed' OR status = 'interrupted'),
  CHECK ((status = 'done' OR status = 'failed') <= (finished_at IS NOT NULL)),
  CHECK (status <> 'awaiting_approval' OR approval_id IS NOT NULL)
);

-- A supervised command. The head of its stream lies in it. Its spec is never searched;
-- the values of its secrets are kept until it has begun.
CREATE TABLE job(
  id              text COLLATE "C"    PRIMARY KEY,
  space           text COLLATE "C"    NOT NULL,
  home            text COLLATE "C"    NOT NULL, -- folder of its launches
  name            text COLLATE "C"    NOT NULL,
  spec            bytea    NOT NULL, -- JSON
  secrets         bytea,             -- JSON
  principal       text COLLATE "C"    NOT NULL,
  idempotency_key text COLLATE "C",
  request         text COLLATE "C"    NOT NULL, -- digest of what was asked for
  status          text COLLATE "C"    NOT NULL,
  paused          bigint NOT NULL CHECK (paused = 0 OR paused = 1),
  launches        bigint NOT NULL CHECK (launches >= 0),
  claim           text COLLATE "C"    NOT NULL,
  launcher        text COLLATE "C"    NOT NULL,
  began_at        bigint,          -- of the claim
  runner          text COLLATE "C"    NOT NULL,
  stop_by         text COLLATE "C"    NOT NULL,
  stop_at         bigint,
  kill_after      bigint NOT NULL CHECK (kill_after >= 0),
  exit_code       bigint NOT NULL,
  signal          text COLLATE "C"    NOT NULL,
  failure         text COLLATE "C"    NOT NULL,
  progress        bytea,             -- JSON
  outputs         bigint NOT NULL CHECK (outputs >= 0),
  dropped         bigint NOT NULL CHECK (dropped = 0 OR dropped = 1),
  event_offset    bigint NOT NULL CHECK (event_offset >= 0),
  pending         bigint NOT NULL CHECK (pending >= 0 AND pending <= questions),
  questions       bigint NOT NULL,
  created_at      bigint NOT NULL,
  started_at      bigint,
  ended_at        bigint,
  cleaned_at      bigint,
  epoch           bigint NOT NULL, -- life of the store in which it was queued or resumed
  version         bigint NOT NULL,
  head_seq        bigint NOT NULL,
  head            bytea,
  CHECK (status = 'queued' OR status = 'launching' OR status = 'running' OR status = 'completed' OR status = 'failed'
    OR status = 'timeout' OR status = 'cancelled' OR status = 'orphaned'),
  CHECK ((status = 'queued' OR status = 'launching' OR status = 'running') = (ended_at IS NULL)),
  CHECK (status <> 'launching' AND status <> 'running' OR claim <> ''),
  CHECK (status <> 'running' OR started_at IS NOT NULL AND runner <> ''),
  CHECK (status = 'queued' OR paused = 0),
  CHECK (secrets IS NULL OR status = 'queued' OR status = 'launching'),
  CHECK (ended_at IS NULL OR pending = 0),
  CHECK (cleaned_at IS NULL OR ended_at IS NOT NULL)
);

CREATE UNIQUE INDEX job_key ON job(space, principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_started ON job(space, principal, id);
CREATE INDEX job_active ON job(home, id) WHERE ended_at IS NULL;
CREATE INDEX job_ended ON job(space, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX job_asking ON job(space, id) WHERE pending > 0;
CREATE INDEX job_status ON job(space, status, cleaned_at, id);
CREATE INDEX job_cleaned ON job(home, id) WHERE cleaned_at IS NOT NULL;

-- One try at carrying a call out. Written before the tool is called.
CREATE TABLE attempt(
  call_id          text COLLATE "C"    NOT NULL REFERENCES call(id),
  n                bigint NOT NULL CHECK (n > 0),
  fence            bigint NOT NULL,
  epoch            bigint NOT NULL,
  approval_id      text COLLATE "C",
  grant_digest     text COLLATE "C"    NOT NULL,
  effective_digest text COLLATE "C"    NOT NULL,
  args             bytea,
  owner            text COLLATE "C"    NOT NULL,
  recovery         text COLLATE "C"    NOT NULL,
  started_at       bigint NOT NULL,
  ended_at         bigint,
  outcome          text COLLATE "C"    CHECK (outcome = 'succeeded' OR outcome = 'failed' OR outcome = 'unknown'),
  kind             text COLLATE "C"    NOT NULL,
  message          text COLLATE "C"    NOT NULL,
  late             bigint NOT NULL,
  PRIMARY KEY (call_id, n),
  CHECK ((outcome IS NULL) = (ended_at IS NULL))
);

-- A question to people and its answer. Two types, one table: an approval is
-- bound by digest to one request; a question has prompt, options and form.
CREATE TABLE decision(
  id                text COLLATE "C"    PRIMARY KEY,
  space             text COLLATE "C"    NOT NULL,
  type              text COLLATE "C"    NOT NULL CHECK (type = 'approval' OR type = 'question'),
  owner_kind        text COLLATE "C"    NOT NULL CHECK (owner_kind = 'call' OR owner_kind = 'run' OR owner_kind = 'job'),
  owner_id          text COLLATE "C"    NOT NULL,
  n                 bigint NOT NULL CHECK (n > 0),
  kind              text COLLATE "C"    NOT NULL,
  capability        bytea,
  presentation      bytea,
  request           bytea,
  digest            text COLLATE "C"    NOT NULL,
  spec_digest       text COLLATE "C"    NOT NULL,
  args_digest       text COLLATE "C"    NOT NULL,
  spent_digest      text COLLATE "C"    NOT NULL,
  reason            text COLLATE "C"    NOT NULL,
  forbid_edits      bigint NOT NULL,
  prompt            bytea,
  options           bytea,
  form              bytea,
  idempotency_key   text COLLATE "C",
  run_id            text COLLATE "C"    NOT NULL,
  call_id           text COLLATE "C"    NOT NULL,
  step_id           text COLLATE "C"    NOT NULL,
  node              text COLLATE "C"    NOT NULL,
  tool              text COLLATE "C"    NOT NULL,
  requested_by      text COLLATE "C"    NOT NULL,
  metadata          bytea,
  created_at        bigint NOT NULL,
  expires_at        bigint,
  grant_ttl         bigint NOT NULL CHECK (grant_ttl >= 0),
  status            text COLLATE "C"    NOT NULL DEFAULT 'pending',
  open              bigint NOT NULL DEFAULT 1,
  needs             bigint NOT NULL CHECK (needs > 0),
  choice            text COLLATE "C"    NOT NULL DEFAULT '',
  input             bytea,
  decided_by        text COLLATE "C"    NOT NULL DEFAULT '',
  decided_principal text COLLATE "C"    NOT NULL DEFAULT '',
  decided_at        bigint,
  verified          bigint NOT NULL DEFAULT 0,
  note              text COLLATE "C"    NOT NULL DEFAULT '',
  edited_args       bytea,
  edited_digest     text COLLATE "C"    NOT NULL DEFAULT '',
  effective_digest  text COLLATE "C"    NOT NULL DEFAULT '',
  grant_expires_at  bigint,
  epoch             bigint NOT NULL,
  settled_at        bigint,
  consumed_at       bigint,
  consumed_by       bigint NOT NULL DEFAULT 0,
  due_at            bigint, -- when it has to expire, while it still can
  version           bigint NOT NULL DEFAULT 1,
  withdrawn_by        text COLLATE "C"  NOT NULL DEFAULT '', -- who took it back
  withdrawn_principal text COLLATE "C"  NOT NULL DEFAULT '',
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
);

CREATE INDEX decision_pending ON decision(space, id) WHERE status = 'pending';
CREATE UNIQUE INDEX decision_key ON decision(owner_kind, owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX decision_due ON decision(due_at) WHERE due_at IS NOT NULL;
CREATE INDEX decision_granted ON decision(space, owner_kind, owner_id) WHERE status = 'approved';
CREATE INDEX decision_moot ON decision(space, owner_kind, owner_id) WHERE kind = 'interrupted_side_effect' AND status IN ('withdrawn', 'superseded');

-- One person's answer. With needs = 1 the first settles.
CREATE TABLE vote(
  decision_id   text COLLATE "C"    NOT NULL REFERENCES decision(id),
  principal     text COLLATE "C"    NOT NULL,
  by            text COLLATE "C"    NOT NULL,
  choice        text COLLATE "C"    NOT NULL,
  input         bytea,
  shown         text COLLATE "C"    NOT NULL,
  edited_digest text COLLATE "C"    NOT NULL,
  note          text COLLATE "C"    NOT NULL,
  at            bigint NOT NULL,
  PRIMARY KEY (decision_id, principal)
);

-- Counters of guards that span calls.
CREATE TABLE guard(
  space  text COLLATE "C"    NOT NULL,
  run_id text COLLATE "C"    NOT NULL,
  name   text COLLATE "C"    NOT NULL,
  key    text COLLATE "C"    NOT NULL,
  n      bigint NOT NULL,
  since  bigint,
  PRIMARY KEY (space, run_id, name, key)
);

-- Keys by which a client repeats a request without repeating its effect.
CREATE TABLE idempotency(
  space     text COLLATE "C"    NOT NULL,
  principal text COLLATE "C"    NOT NULL,
  route     text COLLATE "C"    NOT NULL,
  key       text COLLATE "C"    NOT NULL,
  request   text COLLATE "C"    NOT NULL, -- digest of what was asked for
  call_id   text COLLATE "C"    NOT NULL,
  attempt   bigint NOT NULL, -- that the request started; 0: none
  at        bigint NOT NULL,
  PRIMARY KEY (space, principal, route, key)
);

CREATE INDEX idempotency_at ON idempotency(at);

-- Who may speak to the daemon. The secret itself is nowhere.
CREATE TABLE token(
  id         text COLLATE "C"    PRIMARY KEY,
  space      text COLLATE "C"    NOT NULL,
  scope      text COLLATE "C"    NOT NULL CHECK (scope = 'agent' OR scope = 'reviewer' OR scope = 'operator' OR scope = 'admin'),
  name       text COLLATE "C"    NOT NULL,
  principal  text COLLATE "C"    NOT NULL,
  job_id     text COLLATE "C"    CHECK (job_id IS NULL OR job_id <> '' AND scope = 'agent'),
  hash       bytea    NOT NULL CHECK (length(hash) = 32),
  created_at bigint NOT NULL,
  revoked_at bigint
);

CREATE INDEX token_good ON token(space, principal, id) WHERE revoked_at IS NULL;
CREATE INDEX token_job ON token(job_id) WHERE job_id IS NOT NULL;
