// Package mcpserver lets agents use Placet over the Model Context Protocol: start jobs,
// ask people, wait for their answers, call tools.
//
// Every tool but doctor is the translation of one operation of the daemon's HTTP API, and goes
// through a [Door]: rights, masks and the words of refusals are the API's alone. A
// result is the API's object, unchanged; a refusal is a result with isError and the
// same code, reason, message and hint.
//
// The caller does three things: make a [Server] with the way to the API; either serve
// one connection with [Server.Serve] (standard input and output), or mount
// [Server.Handler] where requests are authenticated; and call [Server.Shutdown] after
// the API was told to stop.
package mcpserver
