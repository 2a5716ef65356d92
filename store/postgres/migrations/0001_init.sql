-- Text is compared byte by byte: ids sort by time, and a page goes on behind one.
-- Truth values are 0 and 1, times microseconds, as in every backend. What a row may be is
-- held against it by a trigger: a CHECK is read and planned anew by every statement, which
-- took more than half of the writing's time.

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
  pos        bigint,
  space      text COLLATE "C"    NOT NULL,
  stream     text COLLATE "C"    NOT NULL,
  stream_seq bigint NOT NULL,
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
  UNIQUE (stream, stream_seq)
);

CREATE FUNCTION event_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.pos > 0)
    AND (NEW.stream_seq > 0)
    AND ((NEW.payload IS NULL) = (NEW.salt IS NULL) AND (NEW.payload IS NULL) = (NEW.actor IS NULL))) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of event cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER event_holds BEFORE INSERT OR UPDATE ON event FOR EACH ROW EXECUTE FUNCTION event_holds();

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
  step_id          text COLLATE "C", -- of the run's step that it hangs below; NULL: it is its own root
  external_id      text COLLATE "C",
  tool             text COLLATE "C"    NOT NULL,
  spec_digest      text COLLATE "C"    NOT NULL,
  recovery         text COLLATE "C"    NOT NULL DEFAULT '', -- as the tool declared it when it was parked or started last
  args             bytea    NOT NULL,
  args_digest      text COLLATE "C"    NOT NULL,
  principal        text COLLATE "C"    NOT NULL,
  metadata         bytea,
  continue_by      text COLLATE "C"    NOT NULL,
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
  head             bytea
);

CREATE FUNCTION call_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.step_id <> '')
    AND (NEW.recovery IN ('', 'person', 'probe', 'key', 'probe+key'))
    AND (NEW.continue_by = 'caller' OR NEW.continue_by = 'daemon')
    AND (NEW.status = 'pending' OR NEW.status = 'running' OR NEW.status = 'succeeded' OR NEW.status = 'failed' OR NEW.status = 'unknown' OR NEW.status = 'denied' OR NEW.status = 'expired' OR NEW.status = 'cancelled')
    AND ((NEW.status = 'running') = (NEW.lease_until IS NOT NULL))
    AND ((NEW.status = 'pending' OR NEW.status = 'running' OR NEW.status = 'unknown') = (NEW.ended_at IS NULL))
    AND (NEW.status <> 'pending' OR NEW.approval_id IS NOT NULL)
    AND (NEW.status <> 'running' OR NEW.attempts > 0)) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of call cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER call_holds BEFORE INSERT OR UPDATE ON call FOR EACH ROW EXECUTE FUNCTION call_holds();

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
  continue_by  text COLLATE "C"    NOT NULL,
  next_try_at  bigint,
  status       text COLLATE "C"    NOT NULL,
  reason       text COLLATE "C"    NOT NULL,
  detail       text COLLATE "C"    NOT NULL,
  result       bytea,
  step_count   bigint NOT NULL,
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
  fence        bigint NOT NULL,
  lease_until  bigint,
  lease_owner  text COLLATE "C"    NOT NULL,
  epoch        bigint NOT NULL,
  created_at   bigint NOT NULL,
  finished_at  bigint,
  version      bigint NOT NULL,
  head_seq     bigint NOT NULL,
  head         bytea
);

CREATE FUNCTION run_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.continue_by = 'caller' OR NEW.continue_by = 'daemon')
    AND (NEW.step_count >= 0)
    AND (NEW.fence > 0)
    AND (NEW.status = 'RUNNING' OR NEW.status = 'WAITING_FOR_APPROVAL' OR NEW.status = 'COMPLETED' OR NEW.status = 'FAILED' OR NEW.status = 'CANCELLED')
    AND ((NEW.status = 'RUNNING' OR NEW.status = 'WAITING_FOR_APPROVAL') = (NEW.finished_at IS NULL))
    AND ((NEW.status = 'RUNNING' OR NEW.status = 'WAITING_FOR_APPROVAL') = (NEW.reason = ''))
    AND (NEW.status = 'RUNNING' OR NEW.lease_until IS NULL)
    AND (NEW.status <> 'WAITING_FOR_APPROVAL' OR NEW.approval_id IS NOT NULL AND NEW.step_count > 0)) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of run cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER run_holds BEFORE INSERT OR UPDATE ON run FOR EACH ROW EXECUTE FUNCTION run_holds();

CREATE INDEX run_running ON run(space, id) WHERE status = 'RUNNING';

-- One turn of a run. The result of its tool lies with its call.
CREATE TABLE step(
  run_id      text COLLATE "C"    NOT NULL REFERENCES run(id),
  n           bigint NOT NULL,
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
  PRIMARY KEY (run_id, n)
);

CREATE FUNCTION step_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.n > 0)
    AND (NEW.status = 'deciding' OR NEW.status = 'awaiting_approval' OR NEW.status = 'executing' OR NEW.status = 'done' OR NEW.status = 'failed' OR NEW.status = 'interrupted')
    AND ((NEW.status = 'done' OR NEW.status = 'failed') <= (NEW.finished_at IS NOT NULL))
    AND (NEW.status <> 'awaiting_approval' OR NEW.approval_id IS NOT NULL)) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of step cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER step_holds BEFORE INSERT OR UPDATE ON step FOR EACH ROW EXECUTE FUNCTION step_holds();

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
  paused          bigint NOT NULL,
  launches        bigint NOT NULL,
  claim           text COLLATE "C"    NOT NULL,
  launcher        text COLLATE "C"    NOT NULL,
  began_at        bigint,          -- of the claim
  runner          text COLLATE "C"    NOT NULL,
  stop_by         text COLLATE "C"    NOT NULL,
  stop_at         bigint,
  kill_after      bigint NOT NULL,
  exit_code       bigint NOT NULL,
  signal          text COLLATE "C"    NOT NULL,
  failure         text COLLATE "C"    NOT NULL,
  progress        bytea,             -- JSON
  outputs         bigint NOT NULL,
  dropped         bigint NOT NULL,
  event_offset    bigint NOT NULL,
  pending         bigint NOT NULL,
  questions       bigint NOT NULL,
  created_at      bigint NOT NULL,
  started_at      bigint,
  ended_at        bigint,
  cleaned_at      bigint,
  epoch           bigint NOT NULL, -- life of the store in which it was queued or resumed
  version         bigint NOT NULL,
  head_seq        bigint NOT NULL,
  head            bytea
);

CREATE FUNCTION job_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.paused = 0 OR NEW.paused = 1)
    AND (NEW.launches >= 0)
    AND (NEW.kill_after >= 0)
    AND (NEW.outputs >= 0)
    AND (NEW.dropped = 0 OR NEW.dropped = 1)
    AND (NEW.event_offset >= 0)
    AND (NEW.pending >= 0 AND NEW.pending <= NEW.questions)
    AND (NEW.status = 'queued' OR NEW.status = 'launching' OR NEW.status = 'running' OR NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'timeout' OR NEW.status = 'cancelled' OR NEW.status = 'orphaned')
    AND ((NEW.status = 'queued' OR NEW.status = 'launching' OR NEW.status = 'running') = (NEW.ended_at IS NULL))
    AND (NEW.status <> 'launching' AND NEW.status <> 'running' OR NEW.claim <> '')
    AND (NEW.status <> 'running' OR NEW.started_at IS NOT NULL AND NEW.runner <> '')
    AND (NEW.status = 'queued' OR NEW.paused = 0)
    AND (NEW.secrets IS NULL OR NEW.status = 'queued' OR NEW.status = 'launching')
    AND (NEW.ended_at IS NULL OR NEW.pending = 0)
    AND (NEW.cleaned_at IS NULL OR NEW.ended_at IS NOT NULL)) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of job cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER job_holds BEFORE INSERT OR UPDATE ON job FOR EACH ROW EXECUTE FUNCTION job_holds();

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
  n                bigint NOT NULL,
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
  outcome          text COLLATE "C",
  kind             text COLLATE "C"    NOT NULL,
  message          text COLLATE "C"    NOT NULL,
  late             bigint NOT NULL,
  PRIMARY KEY (call_id, n)
);

CREATE FUNCTION attempt_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.n > 0)
    AND (NEW.outcome = 'succeeded' OR NEW.outcome = 'failed' OR NEW.outcome = 'unknown')
    AND ((NEW.outcome IS NULL) = (NEW.ended_at IS NULL))) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of attempt cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER attempt_holds BEFORE INSERT OR UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION attempt_holds();

-- A question to people and its answer. Two types, one table: an approval is
-- bound by digest to one request; a question has prompt, options and form.
CREATE TABLE decision(
  id                text COLLATE "C"    PRIMARY KEY,
  space             text COLLATE "C"    NOT NULL,
  type              text COLLATE "C"    NOT NULL,
  owner_kind        text COLLATE "C"    NOT NULL,
  owner_id          text COLLATE "C"    NOT NULL,
  n                 bigint NOT NULL,
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
  grant_ttl         bigint NOT NULL,
  status            text COLLATE "C"    NOT NULL DEFAULT 'pending',
  open              bigint NOT NULL DEFAULT 1,
  needs             bigint NOT NULL,
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
  UNIQUE (owner_kind, owner_id, n)
);

CREATE FUNCTION decision_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.type = 'approval' OR NEW.type = 'question')
    AND (NEW.owner_kind = 'call' OR NEW.owner_kind = 'run' OR NEW.owner_kind = 'job')
    AND (NEW.n > 0)
    AND (NEW.grant_ttl >= 0)
    AND (NEW.needs > 0)
    AND (NEW.status = 'pending' OR NEW.status = 'approved' OR NEW.status = 'rejected' OR NEW.status = 'consumed' OR NEW.status = 'expired' OR NEW.status = 'withdrawn' OR NEW.status = 'superseded' OR NEW.status = 'resolved')
    AND ((NEW.status = 'pending') = (NEW.settled_at IS NULL))
    AND ((NEW.decided_at IS NULL) = (NEW.choice = ''))
    AND ((NEW.choice = '') = (NEW.decided_by = ''))
    AND (NEW.choice <> '' OR NEW.status <> 'approved' AND NEW.status <> 'rejected' AND NEW.status <> 'consumed' AND NEW.status <> 'resolved')
    AND (NEW.status <> 'approved' OR NEW.choice = 'approve')
    AND (NEW.status <> 'rejected' OR NEW.choice = 'reject')
    AND ((NEW.status = 'consumed') = (NEW.consumed_at IS NOT NULL))
    AND ((NEW.edited_args IS NULL) = (NEW.edited_digest = ''))
    AND (NEW.status = 'withdrawn' OR NEW.status = 'superseded' OR NEW.withdrawn_by = '' AND NEW.withdrawn_principal = '')) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of decision cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_holds BEFORE INSERT OR UPDATE ON decision FOR EACH ROW EXECUTE FUNCTION decision_holds();

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
