package pgtest

// Children lists the processes that pid started.
var Children = children

// Ended says whether pid runs no more; nobody need have collected it.
func Ended(pid int) bool {
	_, state := stat(pid)
	return state == 0 || state == 'Z' || state == 'X'
}
