// Package daemontest gives tests the real program, serving a world of their own: a folder
// with tools that do something, their configuration, and a store.
//
//	func TestMain(m *testing.M) { tidy.Main(m) }
//
//	func TestInbox(t *testing.T) {
//		t.Parallel()
//		w := daemontest.Start(t, daemontest.Options{})
//		parked := w.Call("refund", `{"order_id":"o-7","amount":75}`)
//		…
//	}
//
// The program is built once for a test program. Daemons listen on loopback, on a port that
// they keep through [World.Restart], and everything that they leave running ends with the
// test.
package daemontest
