package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// BinaryVariable names the folder with initdb and postgres, where the ones that
// would be found are not meant.
const BinaryVariable = "PLACET_TEST_PG_BIN"

// binaries is the folder that holds both initdb and postgres: the two have to be
// of one version, so they are not looked for separately.
func binaries() (string, error) {
	if dir := os.Getenv(BinaryVariable); dir != "" {
		if !complete(dir) {
			return "", fmt.Errorf("%s is %s, where initdb and postgres are not both", BinaryVariable, dir)
		}
		return dir, nil
	}
	for _, dir := range append(inPath(), ofDebian()...) {
		if complete(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("PostgreSQL's initdb and postgres are not here: install them (scripts/test-postgres does on Debian), or name their folder in %s", BinaryVariable)
}

// Program is where one of PostgreSQL's programs lies, psql or pg_dump for one: beside
// the server's, and so of its version.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := binaries()
	if err != nil {
		tb.Fatal(err)
	}
	found, err := exec.LookPath(filepath.Join(dir, name))
	if err != nil {
		tb.Fatalf("PostgreSQL's %s is not beside its server: %v", name, err)
	}
	return found
}

func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// inPath follows links: PostgreSQL finds its own files beside where it really lies.
func inPath() []string {
	found, err := exec.LookPath("postgres")
	if err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return nil
	}
	return []string{filepath.Dir(real)}
}

// ofDebian lists where Debian keeps versions side by side, the newest first.
func ofDebian() []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // its only error is a bad pattern
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}
