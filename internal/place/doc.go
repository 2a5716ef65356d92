// Package place knows where a store is: in a SQLite file or in a PostgreSQL database.
// What a command line, a daemon or another program of ours does with a whole store
// (open, check, migrate, back up, restore) it does through a [Place], which knows what
// fits the kind, and says so where something does not.
//
// A place never shows a password: [Place.String] is for people, messages and logs.
package place
