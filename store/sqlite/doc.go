// Package sqlite keeps a store in one SQLite file, which several processes may
// use at one time.
//
//	Options, Hooks        what can be tuned
//	open, migrate         a file becomes a store that can be used
//	engine                Update, View, Watch and Close over the parts below
//	queue, writer, batch  closures become few transactions: one commits for all who wait
//	counters              what the closures of a batch add to counters, written once
//	handle, row, conn     statements of one closure on one connection
//	reader, gate, fold    reads, and how the log beside the database is kept small
//	watch                 who is woken by which commit, ours and other processes'
//	lockfile              turns between processes
//	stamp                 how the database file was left, by which one copied over it is noticed
//	mark, meta            what the store and its surroundings know about its past
//	admin, copy, check    the db commands
//
// Beside the database PATH lie PATH-wal and PATH-shm, which belong to it while
// it is open; PATH.next and PATH.write, by which processes take turns;
// PATH.mark, by which a database that was put back by copying is noticed; and
// PATH.before-N, the copy made before the schema became N. All are 0600. A database
// that has been used and has no mark is one that was moved or copied: it can be
// read, and is written only after db accept-restore. It has one name: all of these
// go by it.
//
// Three things to know before changing anything here:
//
//   - A transaction can end under a statement (disk full, interrupt). The next
//     SAVEPOINT would open another, and its RELEASE would commit it alone.
//     Hence batch.dead, which is asked before and after everything.
//   - A closure may have seen what another one of its batch wrote. So nobody is
//     answered, not even with an error of its own, before the batch is durable.
//   - SQLite's locks on a file are gone as soon as this process closes any
//     descriptor of it. Nothing here opens a database file except through SQLite.
package sqlite
