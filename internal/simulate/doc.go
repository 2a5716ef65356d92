// Package simulate runs several daemons on one PostgreSQL database, each a process of its
// own behind a network that fails on demand, lets clients work with all of them while
// processes are killed and connections cut, and checks from the outside what must hold
// whatever happens: no tool runs twice, no decision is lost, no event is missing, and
// whoever waits is answered.
//
// What is looked at is not what the daemons say of themselves alone. Tools write a line to
// a witness file before they do anything; a receiver counts what is delivered; a follower
// reads the events all along; clients note what they were told, and when.
//
// A seed chooses what is done and which faults strike. Processes and networks keep their
// own time, so a seed that failed makes the same choices, and not always the same end.
//
// The test binary is the daemon, too: see [Part].
package simulate
