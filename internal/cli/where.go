package cli

// Results say where they ran (spec 4.1): with --json as the member where, for people in
// a line on standard error.

// doer is one of the two.
type doer string

const (
	thisProcess doer = "process" // this process, on the store itself
	theDaemon   doer = "daemon"
)

// sayWhere is for people. Programs have read it in the result.
func (a *app) sayWhere(by doer, daemon string) {
	if a.json {
		return
	}
	if by == theDaemon {
		a.note("Where: the daemon at %s", own(daemon))
		return
	}
	if p, err := a.place(); err == nil {
		a.note("Where: this process, on the store %s", own(p.String()))
	}
}
