package rules

import (
	"encoding/json"
	"fmt"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/policy"
)

// domain says what a version's digest is over. It changes with the meaning of the rules.
const domain = "placet/rules/v1"

// digest is a policy's version as long as its fallback keeps the version it had.
type digest struct {
	rules    json.RawMessage
	fallback string
	version  string
}

func newDigest(rs []Rule, fallback string) (digest, error) {
	written := make([]any, len(rs))
	for i, r := range rs {
		written[i] = meaning(r)
	}
	b, err := json.Marshal(written)
	if err != nil {
		return digest{}, fmt.Errorf("encode the rules: %w", err)
	}
	d := digest{rules: b, fallback: fallback}
	d.version, err = d.over(fallback)
	return d, err
}

// meaning is everything of a rule that can change a ruling; where it is written is not.
func meaning(r Rule) any {
	return map[string]any{
		"name":             r.Name,
		"when":             r.When,
		"outcome":          r.Outcome,
		"reason":           r.Reason,
		"kind":             r.Kind,
		"expires_in":       r.ExpiresIn,
		"grant_expires_in": r.GrantExpiresIn,
		"forbid_edits":     r.ForbidEdits,
		"presentation":     orNone(r.Presentation),
		"capability":       orNone(r.Capability),
	}
}

func orNone(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func (d digest) over(fallback string) (string, error) {
	b, err := json.Marshal(map[string]any{"rules": d.rules, "fallback": fallback})
	if err != nil {
		return "", fmt.Errorf("encode the rules: %w", err)
	}
	return canon.Digest(domain, b)
}

// Version is a digest over the rules and the fallback's version. It is the same in
// every process that holds the same rules.
func (p *Policy) Version() string {
	now := policy.VersionOf(p.fallback)
	if now == p.digest.fallback {
		return p.digest.version
	}
	v, err := p.digest.over(now)
	if err != nil {
		// Never the old version: what was judged under it may not stand any more.
		return p.digest.version + " " + now
	}
	return v
}
