package decision_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/fault"
)

var rewrite = flag.Bool("rewrite", false, "write what the stories of testdata give now; read the difference before you commit it")

// reason names an error as programs know it.
func reason(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// errorTexts compares errors by what they say.
var errorTexts = cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })

func replaced(b []byte, from, to string) []byte {
	if !bytes.Contains(b, []byte(from)) {
		panic("there is no " + from)
	}
	return bytes.Replace(b, []byte(from), []byte(to), 1)
}

// microseconds is a duration of n µs, kept within what a store can hold.
func microseconds(n int64) time.Duration {
	return time.Duration(n%(1<<50)) * time.Microsecond
}
