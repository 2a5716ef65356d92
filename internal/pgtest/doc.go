// Package pgtest gives tests and measurements a PostgreSQL server of their own,
// and what stands between a program and its server when things go wrong.
//
// Most tests want an empty place in a server that all share:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestOrders(t *testing.T) {
//		t.Parallel()
//		url := pgtest.Schema(t) // or Database, which costs more
//		…
//	}
//
// A test that stops or breaks the server starts one for itself with [Start].
// [NewProxy] puts a network that fails on demand in front of a server, and
// [Pooler] a pgbouncer.
//
// Servers listen on loopback only, trust everybody there, and end with the
// process that started them, however that ends.
package pgtest
