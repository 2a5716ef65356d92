package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/placet-dev/placet/canon"
)

// parseProbe reads what a probe printed: exactly one of the three forms, with no
// other member. An error settles nothing.
func parseProbe(out []byte) (ProbeResult, error) {
	out = bytes.Trim(out, " \t\r\n")
	if len(out) > MaxResult {
		return ProbeResult{}, fmt.Errorf("the probe printed more than %d bytes", MaxResult)
	}
	if err := canon.Valid(out); err != nil {
		return ProbeResult{}, fmt.Errorf("the probe did not print exactly one JSON value: %s", short(err.Error()))
	}
	var w struct {
		Outcome string          `json:"outcome"`
		Result  json.RawMessage `json:"result"`
		Message *string         `json:"message"`
	}
	if err := jsonv2.Unmarshal(out, &w, jsonv2.RejectUnknownMembers(true)); err != nil {
		return ProbeResult{}, fmt.Errorf("the probe's answer is not of a known form: %s", short(err.Error()))
	}
	outcome, result, msg := ProbeOutcome(w.Outcome), w.Result != nil, w.Message != nil
	var misfit error
	switch {
	case outcome == ProbeSucceeded && (!result || msg):
		misfit = errors.New(`the probe's answer succeeded needs "result" and nothing else`)
	case outcome == ProbeFailed && (!msg || result):
		misfit = errors.New(`the probe's answer failed needs "message" and nothing else`)
	case outcome == ProbeNotFound && (msg || result):
		misfit = errors.New("the probe's answer not_found stands alone")
	}
	if misfit != nil {
		return ProbeResult{}, misfit
	}
	r := ProbeResult{Outcome: outcome, Result: w.Result}
	if msg {
		r.Message = *w.Message
	}
	return r.checked()
}
