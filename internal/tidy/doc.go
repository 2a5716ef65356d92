// Package tidy takes away what a test program started and wrote, however that program
// ends: after its last test, in a panic, at its time limit, or killed.
//
// Everything lies below one folder of the program's own. A process belongs to the
// program if its environment names a folder in there, as HOME or TMPDIR say, or if its
// process group was told by [Group]: daemons, what they leave running, and browsers, all of
// whose processes do not keep an environment.
//
//	func TestMain(m *testing.M) { tidy.Main(m) }
//
//	cmd.Env = append(os.Environ(), "HOME="+tidy.Folder(t, "world"))
//
// A shell stands by from the first folder on, and acts when its input ends: when the
// program has. [Main] also waits for it, so that nothing is left once go test returns.
package tidy
