-- Where jobs are launched from: a row for each daemon's home, with the lease by which the
-- others know that it is there. From now on job.home is the id of one; jobs of before have
-- their folder there, until the daemon of that folder gives them its id. Adding a table
-- locks nothing that is there.
CREATE TABLE home(
  id              TEXT    PRIMARY KEY,
  host            TEXT    NOT NULL,
  folder          TEXT    NOT NULL, -- of its launches
  url             TEXT    NOT NULL, -- at which other daemons reach it; empty: they do not
  program_version TEXT    NOT NULL,
  process         TEXT    NOT NULL, -- that holds it
  since           INTEGER NOT NULL, -- it has been held without a gap; microseconds, as the next
  lease_until     INTEGER NOT NULL,
  epoch           INTEGER NOT NULL, -- life of the store in which it was last renewed
  CHECK (lease_until >= since)
) STRICT;
