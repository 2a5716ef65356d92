//go:build !linux

package process

import "os"

// awaitExit collects the leader at once: these systems have no portable way to see
// its end and leave it there. A signal sent right then could in theory reach a new
// group of the same id.
func awaitExit(g *Group) {
	state, err := waited(g.cmd)
	g.state, g.err = state, err
}

func collect(g *Group) (*os.ProcessState, error) { return g.state, g.err }
