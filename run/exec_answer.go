package run

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/placet-dev/placet/canon"
)

// Bounds of what one decision may be said to have taken, so that sums of it stay numbers.
const (
	maxUsage     = 1_000_000_000_000
	maxUsageCost = 1_000_000_000 * costUnit
)

// execAnswer is what an agent's process prints. Pointers tell what is absent.
type execAnswer struct {
	Kind    string         `json:"kind"`
	Tool    *string        `json:"tool"`
	Args    jsontext.Value `json:"args"`
	Reason  *string        `json:"reason"`
	Result  jsontext.Value `json:"result"`
	Message *string        `json:"message"`
	Usage   *Usage         `json:"usage"`
}

// parseAnswer reads exactly one decision. Values inside it are kept as the bytes that
// they are.
func parseAnswer(out []byte) (Proposal, Usage, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return Proposal{}, Usage{}, errors.New("printed nothing")
	}
	if err := canon.Valid(out); err != nil {
		return Proposal{}, Usage{}, fmt.Errorf("what it printed is not exactly one JSON value: %w", err)
	}
	var a execAnswer
	if err := jsonv2.Unmarshal(out, &a, jsonv2.RejectUnknownMembers(true)); err != nil {
		return Proposal{}, Usage{}, fmt.Errorf("what it printed is no decision: %w", inJSON(err))
	}
	if err := a.check(); err != nil {
		return Proposal{}, Usage{}, err
	}
	p := Proposal{Kind: ProposalKind(a.Kind), Args: []byte(a.Args), Result: []byte(a.Result), Raw: bytes.Clone(out)}
	p.Tool, p.Text = orEmpty(a.Tool), orEmpty(a.Reason)+orEmpty(a.Message) // never both
	if a.Usage == nil {
		return p, Usage{}, nil
	}
	return p, *a.Usage, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// check holds an answer against the three forms that there are.
func (a execAnswer) check() error {
	members := []struct {
		name  string
		there bool
		of    ProposalKind
	}{
		{"tool", a.Tool != nil, CallTool},
		{"args", a.Args != nil, CallTool},
		{"reason", a.Reason != nil, CallTool},
		{"result", a.Result != nil, Complete},
		{"message", a.Message != nil, Fail},
	}
	kind := ProposalKind(a.Kind)
	if kind != CallTool && kind != Complete && kind != Fail {
		return fmt.Errorf("the kind that it printed is %s; it is tool_call, complete or fail", quoted(a.Kind))
	}
	for _, m := range members {
		if m.there && m.of != kind {
			return fmt.Errorf("a decision of the kind %s has no %s", kind, m.name)
		}
	}
	if kind == CallTool && (orEmpty(a.Tool) == "" || a.Args == nil) {
		return errors.New("a tool_call needs tool and args")
	}
	if err := a.Usage.check(); err != nil {
		return err
	}
	return errors.Join(finite(a.Args), finite(a.Result))
}

func (u *Usage) check() error {
	if u != nil && (u.ModelCalls < 0 || u.Tokens < 0 || u.Cost < 0 || u.ModelCalls > maxUsage || u.Tokens > maxUsage || u.Cost > maxUsageCost) {
		return errors.New("its usage is negative, or more than can be")
	}
	return nil
}

// finite refuses numbers that most programs read as infinite, so that a tool could
// take them for something else than what people saw.
func finite(v jsontext.Value) error {
	for d := jsontext.NewDecoder(bytes.NewReader(v)); ; {
		t, err := d.ReadToken()
		if err != nil {
			return nil //nolint:nilerr // its end: that it is JSON is known
		}
		if t.Kind() != '0' {
			continue
		}
		if f, _ := strconv.ParseFloat(t.String(), 64); math.IsInf(f, 0) {
			return fmt.Errorf("the number %.40s is beyond what programs can read", t.String())
		}
	}
}
