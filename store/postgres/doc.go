// Package postgres keeps a store in a PostgreSQL database, 14 or later, that several
// machines share.
//
// A transaction locks its root's row first and reads the database's clock after it, at
// READ COMMITTED; every write is guarded. What others were quicker than is judged again,
// a bounded number of times. Statements are sent in groups, and prepared unless a pooler
// in transaction mode is in between.
//
// Nothing common is locked while data is written: others are told afterwards, events get
// their public order afterwards, and counters have slots. A COMMIT that is not answered
// is looked after on another connection; where that fails too the answer is
// [txn.ErrUnknown], and nothing is started on it.
//
// The store lies in a schema of its own. See docs/guide/postgres.md.
package postgres
