package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/placet-dev/placet/fault"
)

var (
	errTop   = fault.Sentinel(fault.Conflict, "test_top", "Top.")
	errUnder = fault.Sentinel(fault.Expired, "test_under", "Under.", errTop)
	errThird = fault.Sentinel(fault.Expired, "test_third", "Third.", errUnder)
	errOther = fault.Sentinel(fault.Conflict, "test_other", "Other.")
)

func roundTrip(t *testing.T, e *fault.Error) *fault.Error {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got := new(fault.Error)
	if err := json.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestMatchesByReasonAlsoAfterJSON(t *testing.T) {
	t.Parallel()
	e := errThird.Say("Approval %s expired.", "apr_1").Hint("Ask again.").With(map[string]any{"status": "expired"})
	for name, err := range map[string]error{
		"here":    e,
		"wrapped": fmt.Errorf("resume: %w", e),
		"decoded": roundTrip(t, e),
	} {
		for _, want := range []error{errThird, errUnder, errTop} {
			if !errors.Is(err, want) {
				t.Errorf("%s: does not match %v", name, want)
			}
		}
		if errors.Is(err, errOther) {
			t.Errorf("%s: matches an error of the same code but another reason", name)
		}
	}
	if errors.Is(errTop, errUnder) {
		t.Error("a parent matches its child")
	}
}

func TestJSONKeepsWhatPeopleRead(t *testing.T) {
	t.Parallel()
	e := errTop.Say("é <b> %q", "\x1b").Hint("do").With(map[string]int{"n": 1})
	got := roundTrip(t, e)
	if got.Message != e.Message || got.Advice != "do" || string(got.Details) != `{"n":1}` || got.Code != fault.Conflict {
		t.Errorf("got %+v", got)
	}
}

func TestRefiningLeavesTheSentinelAlone(t *testing.T) {
	t.Parallel()
	before := *errTop
	_ = errTop.Say("x").Hint("y").Because(io.EOF).With(struct{}{})
	if before.Message != errTop.Message || before.Advice != errTop.Advice || errTop.Unwrap() != nil || errTop.Details != nil {
		t.Errorf("sentinel changed: %+v", errTop)
	}
	if !errors.Is(errTop.Because(io.EOF), io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestFromDoesNotLeakForeignTexts(t *testing.T) {
	t.Parallel()
	if fault.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	e := fault.From(errors.New("password=hunter2"))
	b, _ := json.Marshal(e)
	if e.Code != fault.Internal || string(b) != `{"code":"internal","reason":"internal","message":"Something failed inside Placet."}` {
		t.Errorf("got %s", b)
	}
	if got := fault.From(fmt.Errorf("a: %w", errOther)); got != errOther {
		t.Errorf("got %v", got)
	}
}

func TestOneReasonTwoParentsPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	fault.Sentinel(fault.Conflict, "test_under", "Again.", errOther)
}
