// Command agent-go is an agent and its tools in one program: it makes a small Go
// package compile again. The part is chosen by the first argument; placet.yaml says
// which is what.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// parts are what the program can be: each reads JSON and answers with a value.
var parts = map[string]func(in io.Reader) (any, error){
	"agent":       agent,
	"check":       check,
	"read_file":   readFile,
	"apply_patch": applyPatch,
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 || parts[args[0]] == nil {
		return errors.New("usage: fixer agent|check|read_file|apply_patch")
	}
	answer, err := parts[args[0]](in)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(answer)
}
