// Package id makes the ids of everything that has one: a prefix that tells
// people and programs the kind, and a UUIDv7, so that ids sort by time.
// Ids are names, not secrets.
package id

import (
	"strings"

	"github.com/google/uuid"
)

// The prefixes (spec 4.1).
const (
	Run      = "run_"
	Step     = "stp_"
	Call     = "call_"
	Approval = "apr_"
	Question = "dec_"
	Job      = "job_"
	Target   = "tgt_"
	Delivery = "dlv_"
	Token    = "tok_"
	Event    = "evt_"
	Home     = "hom_"
)

// New makes an id: prefix and a new UUIDv7 from the system's generator.
// It panics if the system has no randomness to give.
func New(prefix string) string { return prefix + uuid.Must(uuid.NewV7()).String() }

// Has reports whether s is a whole id with this prefix.
func Has(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && len(rest) == 36 && uuid.Validate(rest) == nil
}
