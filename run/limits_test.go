package run_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/run"
)

func TestLimitsAsJSON(t *testing.T) {
	t.Parallel()
	full := run.Limits{
		MaxSteps: 1, MaxConsecutiveToolFailures: 2, LoopThreshold: 3, MaxActiveTime: 90 * time.Second, MaxElapsedTime: 36 * time.Hour,
		MaxModelCalls: 4, MaxTotalTokens: math.MaxInt64, MaxEstimatedCost: 2_500_000, ApprovalTTL: time.Microsecond, GrantTTL: 24 * time.Hour,
	}
	for _, tt := range []struct {
		limits run.Limits
		want   string
	}{
		{run.Limits{}, `{}`},
		{run.DefaultLimits(), `{"max_steps":50,"max_consecutive_tool_failures":3,"loop_threshold":3}`},
		{full, `{"max_steps":1,"max_consecutive_tool_failures":2,"loop_threshold":3,"max_active_time":"1m30s","max_elapsed_time":"36h0m0s",` +
			`"max_model_calls":4,"max_total_tokens":9223372036854775807,"max_estimated_cost":2.5,"approval_ttl":"1µs","grant_ttl":"24h0m0s"}`},
	} {
		b, err := json.Marshal(tt.limits)
		if err != nil || string(b) != tt.want {
			t.Errorf("%v: %s, want %s", err, b, tt.want)
		}
		var back run.Limits
		if err := json.Unmarshal(b, &back); err != nil || back != tt.limits {
			t.Errorf("%s comes back as %+v: %v", b, back, err)
		}
	}
	l := run.DefaultLimits()
	if err := json.Unmarshal([]byte(`{"max_steps":7,"max_elapsed_time":null,"max_estimated_cost":null}`), &l); err != nil {
		t.Fatal(err)
	}
	want := run.DefaultLimits()
	want.MaxSteps = 7
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("what is not named has changed (-want +got):\n%s", diff)
	}
}

// What cannot be read changes nothing, and the refusal names where it stands.
func TestUnusableLimits(t *testing.T) {
	t.Parallel()
	for text, names := range map[string]string{
		`{"max_stepz":1}`:                             "max_stepz",
		`{"Max_Steps":1}`:                             "Max_Steps",
		`{"max_steps":1,"max_steps":2}`:               "max_steps",
		`{"max_steps":"1"}`:                           "max_steps",
		`{"max_steps":1.5}`:                           "max_steps",
		`{"max_steps":1e3}`:                           "max_steps",
		`{"max_total_tokens":9223372036854775808}`:    "max_total_tokens",
		`{"max_active_time":90}`:                      "max_active_time",
		`{"max_active_time":"90"}`:                    "max_active_time",
		`{"max_elapsed_time":"one hour"}`:             "max_elapsed_time",
		`{"approval_ttl":"9999999h"}`:                 "approval_ttl",
		`{"grant_ttl":true}`:                          "grant_ttl",
		`{"max_estimated_cost":"2.5"}`:                "max_estimated_cost",
		`{"max_estimated_cost":2.5000001}`:            "max_estimated_cost",
		`{"max_estimated_cost":1e3}`:                  "max_estimated_cost",
		`{"max_estimated_cost":9223372036854.775808}`: "max_estimated_cost",
		`[]`:   "",
		`7`:    "",
		`{}{}`: "",
		``:     "",
	} {
		l := run.DefaultLimits()
		err := l.UnmarshalJSON([]byte(text))
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v does not name %q", text, err, names)
		}
		if diff := cmp.Diff(run.DefaultLimits(), l); diff != "" {
			t.Errorf("%s changed the limits:\n%s", text, diff)
		}
	}
}

// Each limit that cannot be kept is named.
func TestCheckNamesTheLimit(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*run.Limits, int64){
		"max_steps":                     func(l *run.Limits, n int64) { l.MaxSteps = n },
		"max_consecutive_tool_failures": func(l *run.Limits, n int64) { l.MaxConsecutiveToolFailures = n },
		"loop_threshold":                func(l *run.Limits, n int64) { l.LoopThreshold = n },
		"max_active_time":               func(l *run.Limits, n int64) { l.MaxActiveTime = time.Duration(n) },
		"max_elapsed_time":              func(l *run.Limits, n int64) { l.MaxElapsedTime = time.Duration(n) },
		"max_model_calls":               func(l *run.Limits, n int64) { l.MaxModelCalls = n },
		"max_total_tokens":              func(l *run.Limits, n int64) { l.MaxTotalTokens = n },
		"max_estimated_cost":            func(l *run.Limits, n int64) { l.MaxEstimatedCost = run.Cost(n) },
		"approval_ttl":                  func(l *run.Limits, n int64) { l.ApprovalTTL = time.Duration(n) },
		"grant_ttl":                     func(l *run.Limits, n int64) { l.GrantTTL = time.Duration(n) },
	} {
		required := name == "max_steps" || name == "max_consecutive_tool_failures" || name == "loop_threshold"
		for _, n := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			l := run.DefaultLimits()
			set(&l, n)
			err := l.Check()
			if bad := n < 0 || n == 0 && required; bad != errors.Is(err, run.ErrUsage) || bad && !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for c, want := range map[run.Cost]string{
		0: "0", 1: "0.000001", 10: "0.00001", 500_000: "0.5", 1_000_000: "1", 10_000_000: "10", 2_500_000: "2.5", -2_500_000: "-2.5", -1: "-0.000001",
		math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808",
	} {
		if got := c.String(); got != want {
			t.Errorf("%d is written %s, want %s", int64(c), got, want)
		}
		var back run.Cost
		if err := json.Unmarshal([]byte(want), &back); err != nil || back != c {
			t.Errorf("%s is read as %d: %v", want, int64(back), err)
		}
	}
	for text, want := range map[string]run.Cost{"2.50": 2_500_000, "2.500000": 2_500_000, "-0": 0, "-0.5": -500_000, "0.1": 100_000, "7": 7_000_000} {
		var c run.Cost
		if err := json.Unmarshal([]byte(text), &c); err != nil || c != want {
			t.Errorf("%s is read as %d: %v", text, int64(c), err)
		}
	}
	for _, text := range []string{"0.0000001", "1e3", "1E-3", `"1"`, "true", "{}", "9223372036855", "-9223372036854.775809", "99999999999999999999", "+5", "1_0", "", "."} {
		var c run.Cost
		if err := c.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, int64(c))
		}
	}
}

// Whatever the bytes: what is read is written so that it is read the same, and what
// is not changes nothing.
func FuzzLimits(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"max_steps":1,"max_active_time":"1h","max_estimated_cost":0.000001}`, `{"max_steps":1,"max_steps":1}`, `{"max_estimated_cost":-0}`,
		`{"grant_ttl":"-1ns"}`, `{"approval_ttl":"1.5h"}`, `null`, `{"max_steps":null}`, "{\"max_steps\":1}\x00", `{"max_estimated_cost":1e400}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := run.DefaultLimits()
		if err := json.Unmarshal(b, &l); err != nil {
			if l != run.DefaultLimits() {
				t.Fatalf("%q is refused and changed the limits: %+v", b, l)
			}
			return
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var back run.Limits
		if err := json.Unmarshal(again, &back); err != nil || back != l {
			t.Fatalf("%q is %+v, written as %s, read as %+v: %v", b, l, again, back, err)
		}
	})
}
