-- What does not wait any more, by when it stopped: without it the list of what was decided
-- would sort all that ever was. It holds no decision that is pending, so asking does not
-- write to it. The file is locked while the index is built: about a second for a million
-- decisions, which are all read once.
CREATE INDEX decision_settled ON decision(space, settled_at, id) WHERE status <> 'pending';
