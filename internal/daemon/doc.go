// Package daemon is the process behind placet serve: it holds a store's lock, serves
// HTTP on an address and a Unix socket, sweeps, carries out approved work that is a
// daemon's to carry out, and looks after jobs. Everything it knows is in the store, so
// another one goes on where it stopped, however it ended.
package daemon
