package problem_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/problem"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	for status, err := range map[int]error{
		http.StatusBadRequest:            fault.New(fault.Invalid, "x"),
		http.StatusUnprocessableEntity:   fault.Sentinel(fault.Invalid, "invalid_arguments", "x"),
		http.StatusNotFound:              fault.New(fault.NotFound, "x"),
		http.StatusConflict:              fault.New(fault.Conflict, "x"),
		http.StatusGone:                  fault.New(fault.Expired, "x"),
		http.StatusServiceUnavailable:    fault.New(fault.Unknown, "x"),
		http.StatusInternalServerError:   errors.New("not one of ours"),
		http.StatusTooManyRequests:       fault.New(fault.TooMany, "x"),
		http.StatusRequestEntityTooLarge: fault.New(fault.TooLarge, "x"),
	} {
		if got := problem.Status(err); got != status {
			t.Errorf("%v is %d, want %d", err, got, status)
		}
	}
	if got := problem.Status(&fault.Error{Code: "made up"}); got != http.StatusInternalServerError {
		t.Errorf("an unknown class is %d", got)
	}
}

// What went over HTTP is the same error on the far side.
func TestRead(t *testing.T) {
	t.Parallel()
	sent := fault.Sentinel(fault.Conflict, "problem_test_rule", "It moved.").Hint("Look again.").With(map[string]int{"n": 1})
	body, err := json.Marshal(map[string]any{"status": 409, "code": sent.Code, "reason": sent.Reason, "detail": sent.Message, "hint": sent.Advice, "details": sent.Details})
	if err != nil {
		t.Fatal(err)
	}
	got := problem.Read(409, body)
	if !errors.Is(got, sent) || got.Message != sent.Message || got.Advice != sent.Advice || string(got.Details) != string(sent.Details) || problem.Status(got) != 409 {
		t.Errorf("it came back as %+v", got)
	}
	for _, body := range []string{"", "null", "{}", "<html>", `{"reason":""}`, `{"reason":7}`} {
		if got := problem.Read(502, []byte(body)); got.Code != fault.Internal {
			t.Errorf("%q is %+v", body, got)
		}
	}
}

// An answer is one only where it is no refusal.
func TestAnswer(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	if _, err := problem.Answer(200, []byte("{}"), lost); !errors.Is(err, lost) {
		t.Errorf("no answer is %v", err)
	}
	if got, err := problem.Answer(201, []byte("{}"), nil); string(got) != "{}" || err != nil {
		t.Errorf("an answer is %s, %v", got, err)
	}
	for _, status := range []int{300, 404, 500} {
		got, err := problem.Answer(status, []byte(`{"code":"not_found","reason":"gone","detail":"It is gone."}`), nil)
		if f := fault.From(err); got != nil || f.Reason != "gone" {
			t.Errorf("a refusal is %s, %v", got, err)
		}
	}
}
