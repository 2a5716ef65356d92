// Command states writes docs/states.md: for each machine the states there are, what
// can happen in each, the events that it writes, and what is refused. It asks the
// machines themselves, so the page cannot say what they do not do.
package main

import (
	"fmt"
	"os"
)

func main() {
	text, err := page(".")
	if err == nil {
		err = os.WriteFile("docs/states.md", []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "states:", err)
		os.Exit(1)
	}
}
