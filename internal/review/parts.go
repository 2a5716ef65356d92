package review

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Parts are the digests of what a yes is bound to, part by part: a page keeps them, so that
// once the whole has changed it can be said what of it.
type Parts [5]string

var partNames = [len(Parts{})]string{"kind", "tool", "arguments", "presentation", "capability"}

// Parts are those of the approval as it was read.
func (a Approval) Parts() Parts {
	spec, _ := a.Request.Tool.JSON()
	var p Parts
	for i, b := range [len(p)][]byte{[]byte(a.Kind), spec, a.Request.Args, a.Presentation, a.Capability} {
		sum := sha256.Sum256(b)
		p[i] = hex.EncodeToString(sum[:8])
	}
	return p
}

// String is for a form.
func (p Parts) String() string { return strings.Join(p[:], ".") }

// Changed names the parts that are others than when s was made.
func (p Parts) Changed(s string) []string {
	was := strings.Split(s, ".")
	if len(was) != len(p) {
		return nil
	}
	var names []string
	for i := range p {
		if p[i] != was[i] {
			names = append(names, partNames[i])
		}
	}
	return names
}
