package cli

// Results say where they ran (spec 4.1): with --json as the member where, for people in
// a line on standard error.

// place is one of the two.
type place string

const (
	thisProcess place = "process" // this process, on the store itself
	theDaemon   place = "daemon"
)

// sayWhere is for people. Programs have read it in the result.
func (a *app) sayWhere(at place, daemon string) {
	if a.json {
		return
	}
	if at == theDaemon {
		a.note("Where: the daemon at %s", own(daemon))
		return
	}
	if path, err := a.dbPath(); err == nil {
		a.note("Where: this process, on the store %s", own(path))
	}
}
