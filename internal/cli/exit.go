package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
)

// Exit codes (spec 4.1).
const (
	exitDone    = 0
	exitFailed  = 1 // refused or failed
	exitUsage   = 2 // a command line that cannot be understood, or lacks a yes that it needs
	exitTimeout = 3 // waited, and it did not happen
	exitParked  = 4 // this command parked a call
)

// exitCode ends a command that has printed what it had to say.
type exitCode int

func (exitCode) Error() string { return "" }

// usageError is about the command line itself.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// errUse is a usage error of ours.
var errUse = fault.Sentinel(fault.Invalid, "usage", "This command line cannot be understood.")

// use refuses a command line with what to write instead.
func use(message, hint string) error { return usageError{errUse.Say("%s", message).Hint("%s", hint)} }

// notBoth refuses two flags that say different things.
func notBoth(c *cobra.Command, one, other string) error {
	if c.Flags().Changed(one) && c.Flags().Changed(other) {
		return use("--"+one+" and --"+other+" cannot stand together.", "Give one of them.")
	}
	return nil
}

// wrongUse dresses what the flag parser says. What is in our words already stays.
func wrongUse(c *cobra.Command, err error) error {
	text := err.Error()
	if text == "" || errors.As(err, &usageError{}) {
		return err
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return wrongValue(value.GetFlag(), value.GetValue())
	}
	var lacks *pflag.ValueRequiredError
	if errors.As(err, &lacks) {
		return use("--"+lacks.GetFlag().Name+" needs a value.", "See "+c.CommandPath()+" --help.")
	}
	// The parser lists suggestions on lines of their own.
	text = strings.Join(strings.Fields(text), " ")
	return use(strings.ToUpper(text[:1])+text[1:]+".", "See "+c.CommandPath()+" --help.")
}

// wrongValue says how the value of a flag is written.
func wrongValue(f *pflag.Flag, value string) error {
	flag := "--" + f.Name
	if s, ok := f.Value.(wholeSeconds); ok {
		return s.refused(flag, value)
	}
	hint := "See --help."
	switch f.Value.Type() {
	case "bool":
		return use(flag+" takes no value; "+quote(value)+" was given.", "Write "+flag+", or leave it out.")
	case "duration":
		hint = "Write it like " + flag + " 30s."
	case "int":
		hint = "Write it like " + flag + " 50."
	}
	return use(quote(value)+" cannot be the value of "+flag+".", hint)
}

var errInterrupted = fault.Sentinel(fault.Unavailable, "interrupted", "Interrupted; nothing was started by this command since then.")

// timedOut is an error that ends a wait.
type timedOut struct{ err error }

func (e timedOut) Error() string { return e.err.Error() }
func (e timedOut) Unwrap() error { return e.err }

// exit tells an error and says which code it is.
func (a *app) exit(err error) int {
	if err == nil {
		return exitDone
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	exit := exitFailed
	if errors.As(err, &usageError{}) {
		exit = exitUsage
	}
	// The commands of cobra that take subcommands complain without our help.
	if strings.HasPrefix(err.Error(), "unknown command ") {
		err = use(strings.Join(strings.Fields(err.Error()), " ")+".", "See placet --help.")
		exit = exitUsage
	}
	if errors.As(err, &timedOut{}) {
		exit = exitTimeout
	}
	a.tell(err)
	return exit
}

// tell prints an error: an object on standard output for programs, a sentence
// and what to do on standard error for people.
func (a *app) tell(err error) {
	f := faultOf(err)
	if a.json {
		f.Details = a.mask.Scrub(orObject(f.Details))
		if string(f.Details) == "{}" {
			f.Details = nil
		}
		f.Message, f.Advice = a.mask.Text(f.Message), a.mask.Text(f.Advice)
		a.emit(struct {
			Error *fault.Error `json:"error"`
		}{f})
		return
	}
	lines := []string{f.Message}
	if errors.Is(err, config.ErrConfig) { // one line for each thing that is wrong
		lines = strings.Split(f.Message, "\n")
	}
	for i, l := range lines {
		if i == 0 {
			a.note("placet: %s", l)
			continue
		}
		a.note("  %s", l)
	}
	if f.Advice != "" {
		a.note("  %s", f.Advice)
	}
}

func orObject(b []byte) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
}

// faultOf is err in the one shape. At a terminal of the store's own user nothing
// has to be held back: what was being done, and the cause, are said.
func faultOf(err error) *fault.Error {
	f := *fault.From(err)
	var own *fault.Error
	if !errors.As(err, &own) {
		f.Message = err.Error()
		return &f
	}
	if doing, ok := strings.CutSuffix(err.Error(), own.Error()); ok {
		f.Message = doing + f.Message
	}
	if cause := own.Unwrap(); cause != nil {
		f.Message += " (" + cause.Error() + ")"
	}
	return &f
}
