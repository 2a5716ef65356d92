package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// wholeSeconds is the value of a flag that travels as a number of seconds. Less than
// one would be lost on the way, and 0 means the default there: neither is taken.
type wholeSeconds struct {
	n           *int64
	least, most time.Duration
}

// secondsFlag adds a flag for whole seconds between two bounds. What n holds is its
// default; 0 is none.
func secondsFlag(c *cobra.Command, n *int64, name string, least, most time.Duration, usage string) {
	c.Flags().Var(wholeSeconds{n, least, most}, name, usage)
}

// Set reads a duration such as 90s or 1h30m.
func (s wholeSeconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < s.least || d > s.most || d%time.Second != 0 {
		return errors.New("out of range") // wrongValue says it
	}
	*s.n = int64(d / time.Second)
	return nil
}

// String is the value; empty for none.
func (s wholeSeconds) String() string {
	if s.n == nil || *s.n == 0 {
		return ""
	}
	return plainTime(time.Duration(*s.n) * time.Second)
}

// Type is pflag's word.
func (s wholeSeconds) Type() string { return "seconds" }

func (s wholeSeconds) refused(flag, value string) error {
	text := fmt.Sprintf("%s takes whole seconds, from %s to %s; %s was given.", flag, plainTime(s.least), plainTime(s.most), quote(value))
	return use(text, "Write it like "+flag+" 90s or "+flag+" 1h.")
}

// plainTime is a duration without the zeroes at its end: 1h, 90h30m, 0s.
func plainTime(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}
