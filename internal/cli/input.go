package cli

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/tool"
)

// readFile reads a file, or standard input for -. It is bounded: more could not
// be arguments.
func (a *app) readFile(path string) ([]byte, error) {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fault.New(fault.Invalid, "The file %s cannot be read.", path).Because(err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, tool.MaxArgs+1))
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s cannot be read.", inputName(path)).Because(err)
	}
	if len(b) > tool.MaxArgs {
		return nil, fault.New(fault.TooLarge, "%s has more than %d bytes, which is the limit for arguments.", inputName(path), tool.MaxArgs)
	}
	return b, nil
}

func inputName(path string) string {
	if path == "-" {
		return "Standard input"
	}
	return "The file " + path
}

// readArgs is the value of --args: JSON, @FILE, or - for standard input.
func (a *app) readArgs(s string) ([]byte, error) {
	switch {
	case s == "-":
		return a.readFile("-")
	case strings.HasPrefix(s, "@"):
		return a.readFile(s[1:])
	}
	return []byte(s), nil
}

var errSyntax = fault.Sentinel(fault.Invalid, "invalid_json", "This is not JSON that can be used.")

// badJSON says where a text stops being JSON.
func badJSON(what string, err error) error {
	var s *canon.SyntaxError
	if errors.As(err, &s) {
		return errSyntax.Say("%s cannot be used: %s.", what, s.Error())
	}
	return errSyntax.Say("%s cannot be used.", what).Because(err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
