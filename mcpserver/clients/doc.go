// Package clients has no code of its own: its tests drive Placet's MCP server with MCP
// clients that others wrote, and run the protocol's conformance suite against it.
package clients
