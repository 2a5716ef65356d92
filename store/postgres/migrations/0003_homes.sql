-- Where jobs are launched from: a row for each daemon's home, with the lease by which the
-- others know that it is there. From now on job.home is the id of one; jobs of before have
-- their folder there, until the daemon of that folder gives them its id. Adding a table
-- locks nothing that is there.
CREATE TABLE home(
  id              text COLLATE "C"    PRIMARY KEY,
  host            text COLLATE "C"    NOT NULL,
  folder          text COLLATE "C"    NOT NULL, -- of its launches
  url             text COLLATE "C"    NOT NULL, -- at which other daemons reach it; empty: they do not
  program_version text COLLATE "C"    NOT NULL,
  process         text COLLATE "C"    NOT NULL, -- that holds it
  since           bigint NOT NULL, -- it has been held without a gap; microseconds, as the next
  lease_until     bigint NOT NULL,
  epoch           bigint NOT NULL, -- life of the store in which it was last renewed
  CHECK (lease_until >= since)
);
