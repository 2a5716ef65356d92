// Package storetest is what every backend has to pass: one suite over
// [store.Store], run by each backend's own tests with [Run].
//
// A backend declares what it is with [Backend] and how a store of it is opened,
// broken and put back with [Instance]. Differences between backends are such
// data; no test asks for a name. What a backend does not declare is skipped with
// a sentence that says so.
//
// Each file is one subject. A test has its own store, runs in parallel, and
// waits for signals. Closures run twice wherever the backend can do that, so
// every test also shows that a closure which is run again has no second effect.
//
// [CheckInvariants] is what holds of any store at any time, for other tests too.
package storetest
