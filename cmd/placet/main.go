// Command placet makes an agent's risky action wait for a person's yes, and then
// runs exactly what was approved, once. Run placet without arguments for its
// commands.
package main

import (
	"os"

	"github.com/placet-dev/placet/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
