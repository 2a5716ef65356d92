// Package webhook sends deliveries as webhooks: a POST signed as Standard Webhooks
// has it, to an address that was judged before it was connected to.
//
// What an answer means:
//
//	2xx            arrived
//	3xx            failed: no redirect is followed
//	410            gone: the receiver wants nothing any more
//	429, 503       failed, to be tried again after Retry-After
//	anything else  failed
//
// A URL is written by somebody who may not be trusted with what this host can reach.
// So every attempt resolves the name anew, judges every address that it has, and
// connects to one of those very addresses; one address that is not allowed stops the
// attempt. The table is in address.go. No connection is kept for a next attempt.
//
// What cannot be seen from here: a NAT64 prefix of the network's own, and a router
// that leads a public address to the inside.
package webhook
