// Package browsertest gives tests a real browser: Chromium, one process for a test
// program, with a session of its own for each test.
//
//	func TestMain(m *testing.M) { tidy.Main(m) }
//
//	func TestInbox(t *testing.T) {
//		t.Parallel()
//		p := browsertest.New(t)
//		p.Open(w.URL + "/")
//		p.Fill("input[name=token]", secret)
//		p.Follow("button >> Sign in")
//		p.WaitFor("h1 >> Inbox")
//		if bad := p.Contrast(); len(bad) > 0 {
//			t.Errorf("hard to read: %v", bad)
//		}
//	}
//
// A page does what a person can do: it clicks where something is seen and not covered,
// presses keys, and waits until it sees what it looks for. What it cannot do in time ends
// the test with what the page shows, what its console says, and a picture. So methods are
// for the test's own goroutine.
//
// A selector is one of CSS, and may go on with " >> " and the text of the element that is
// meant: "button >> Approve".
//
// The browser finds this machine only: localhost, 127.0.0.1, and every name that ends in
// .test, which is a site of its own at 127.0.0.1. [Page.Requests] has every request of a
// page, also those that went nowhere.
package browsertest
