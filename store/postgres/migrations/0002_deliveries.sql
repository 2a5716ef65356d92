-- Who wants to hear of which events. Adding a table locks nothing that is there.
CREATE TABLE wake_target(
  id           text COLLATE "C"    PRIMARY KEY,
  space        text COLLATE "C"    NOT NULL,
  kind         text COLLATE "C"    NOT NULL CHECK (kind = 'webhook' OR kind = 'command' OR kind = 'relay'),
  stream       text COLLATE "C"    NOT NULL, -- of the one root that it hears of; empty: of every root
  name         text COLLATE "C"    NOT NULL,
  events       bytea    NOT NULL, -- JSON
  principal    text COLLATE "C"    NOT NULL,
  url          text COLLATE "C"    NOT NULL,
  headers      bytea,             -- JSON
  command      bytea,             -- JSON
  secret       bytea,
  old_secret   bytea,
  old_until    bigint,
  max_attempts bigint NOT NULL CHECK (max_attempts > 0),
  retry_delay  bigint NOT NULL CHECK (retry_delay > 0), -- microseconds, as all that follow
  timeout      bigint NOT NULL CHECK (timeout > 0),
  max_age      bigint NOT NULL CHECK (max_age > 0),
  unordered    bigint NOT NULL,
  created_at   bigint NOT NULL,
  disabled_at  bigint,
  disabled     text COLLATE "C"    NOT NULL,
  removed_at   bigint,
  version      bigint NOT NULL,
  CHECK ((old_secret IS NULL) = (old_until IS NULL)),
  CHECK ((disabled_at IS NULL) = (disabled = ''))
);

CREATE INDEX wake_target_hears ON wake_target(stream, space, id) WHERE disabled_at IS NULL AND removed_at IS NULL;
CREATE INDEX wake_target_listed ON wake_target(space, id) WHERE removed_at IS NULL;
CREATE INDEX wake_target_of ON wake_target(stream) WHERE stream > '';
CREATE INDEX wake_target_removed ON wake_target(id) WHERE removed_at IS NOT NULL;

-- One event for one target. due_at is when it may be claimed; NULL while it may not.
CREATE TABLE delivery(
  id           text COLLATE "C"    PRIMARY KEY,
  space        text COLLATE "C"    NOT NULL,
  target_id    text COLLATE "C"    NOT NULL REFERENCES wake_target(id),
  pushed       bigint NOT NULL,
  ordered      bigint NOT NULL,
  seq          bigint NOT NULL, -- of the event
  stream       text COLLATE "C"    NOT NULL,
  stream_seq   bigint NOT NULL,
  type         text COLLATE "C"    NOT NULL,
  subject      text COLLATE "C"    NOT NULL,
  asks         bigint NOT NULL,
  status       text COLLATE "C"    NOT NULL,
  attempts     bigint NOT NULL,
  due_at       bigint,
  message      text COLLATE "C"    NOT NULL,
  out_of_order bigint NOT NULL,
  fence        bigint NOT NULL,
  owner        text COLLATE "C"    NOT NULL,
  try_at       bigint,          -- the last attempt, as one of delivery_attempt
  try_ended    bigint,
  try_outcome  text COLLATE "C",
  try_status   bigint NOT NULL,
  try_message  text COLLATE "C"    NOT NULL,
  token        bytea,
  lease_until  bigint,
  epoch        bigint NOT NULL,
  created_at   bigint NOT NULL,
  gives_up_at  bigint NOT NULL,
  budget       bigint NOT NULL,
  ended_at     bigint,
  version      bigint NOT NULL,
  UNIQUE (seq, target_id) -- by seq, so that new ones come to its end
);

CREATE FUNCTION delivery_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.stream_seq > 0)
    AND (NEW.attempts >= 0)
    AND (NEW.fence >= 0)
    AND (NEW.try_outcome = 'delivered' OR NEW.try_outcome = 'failed' OR NEW.try_outcome = 'refused' OR NEW.try_outcome = 'gone' OR NEW.try_outcome = 'reclaimed' OR NEW.try_outcome = 'released')
    AND (NEW.status = 'pending' OR NEW.status = 'dispatching' OR NEW.status = 'retrying' OR NEW.status = 'delivered' OR NEW.status = 'dead' OR NEW.status = 'dropped')
    AND ((NEW.status = 'pending' OR NEW.status = 'dispatching' OR NEW.status = 'retrying') = (NEW.ended_at IS NULL))
    AND ((NEW.status = 'dispatching') = (NEW.lease_until IS NOT NULL))
    AND (NEW.due_at IS NULL OR NEW.status = 'pending' OR NEW.status = 'retrying')
    AND (NEW.status <> 'dispatching' OR NEW.fence > 0 AND NEW.try_ended IS NULL)
    AND ((NEW.try_at IS NULL) = (NEW.fence = 0))
    AND ((NEW.try_outcome IS NULL) = (NEW.try_ended IS NULL))) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of delivery cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER delivery_holds BEFORE INSERT OR UPDATE ON delivery FOR EACH ROW EXECUTE FUNCTION delivery_holds();

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
  delivery_id text COLLATE "C"    NOT NULL REFERENCES delivery(id),
  n           bigint NOT NULL,
  owner       text COLLATE "C"    NOT NULL,
  started_at  bigint NOT NULL,
  ended_at    bigint NOT NULL,
  outcome     text COLLATE "C"    NOT NULL,
  status      bigint NOT NULL,
  message     text COLLATE "C"    NOT NULL,
  PRIMARY KEY (delivery_id, n)
);

CREATE FUNCTION delivery_attempt_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((NEW.n > 0)
    AND (NEW.outcome = 'delivered' OR NEW.outcome = 'failed' OR NEW.outcome = 'refused' OR NEW.outcome = 'gone' OR NEW.outcome = 'reclaimed' OR NEW.outcome = 'released')) IS FALSE THEN
    RAISE check_violation USING MESSAGE = 'a row of delivery_attempt cannot be so';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER delivery_attempt_holds BEFORE INSERT OR UPDATE ON delivery_attempt FOR EACH ROW EXECUTE FUNCTION delivery_attempt_holds();

-- Rises with each change of targets, so that a process that keeps them in memory notices.
ALTER TABLE meta ADD COLUMN targets bigint NOT NULL DEFAULT 0;

-- A program that knows no wake targets would write events that nobody hears of.
UPDATE meta SET min_writer = 2 WHERE id = 1;
