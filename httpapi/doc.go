// Package httpapi is Placet over HTTP: the tool server, the decisions, runs and events
// of a store, and a [Client] of the same operations.
//
// A [Server] is an http.Handler over engines that somebody else opened; placet serve
// is one around it. It authenticates before it reads a body, decides on no GET, and
// answers what it does not know with problem+json. Its document, openapi.yaml, is
// written from the routes themselves.
//
// The caller does three things: give it a store, an executor and tools; serve its
// Handler on an address that only the right people reach; call [Server.Shutdown]
// before the listener closes, so that whoever waits is told.
package httpapi
