package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/placet-dev/placet/tool"
)

// What a caller reports of a call that it carried out itself is sorted as if the
// registered tool had returned it.
func TestOutcomeOfIsInvokes(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		result string
		err    error
	}{
		"result":      {`{"a":1}`, nil},
		"white space": {" 1\n", nil},
		"nothing":     {"", nil},
		"two values":  {"1 2", nil},
		"not JSON":    {"{", nil},
		"error":       {"", errors.New("disk full")},
		"aborted":     {"", tool.ErrAbort},
		"not started": {"", tool.ErrNotStarted},
		"unknown":     {"", tool.ErrOutcomeUnknown},
	} {
		for _, class := range []tool.SideEffect{tool.ReadOnly, tool.RemoteMutation} {
			tl := &tool.Tool{Spec: tool.Spec{Name: "x", SideEffect: class}, Run: tool.RunnerFunc(
				func(context.Context, tool.Call) (json.RawMessage, error) {
					return json.RawMessage(answer.result), answer.err
				},
			)}
			want := tool.Invoke(t.Context(), tl, tool.Call{}, nil)
			got := tl.OutcomeOf(json.RawMessage(answer.result), answer.err)
			if got.Status != want.Status || got.Kind != want.Kind || got.Message != want.Message || string(got.Result) != string(want.Result) || got.Abort != want.Abort {
				t.Errorf("%s, %s: %+v, a tool that returns it: %+v", name, class, got, want)
			}
		}
	}
}

func TestElsewhereBeginsNothing(t *testing.T) {
	t.Parallel()
	tl := &tool.Tool{Spec: tool.Spec{Name: "x", SideEffect: tool.RemoteMutation}, Run: tool.Elsewhere}
	if o := tool.Invoke(t.Context(), tl, tool.Call{}, nil); o.Status != tool.Failed || o.Kind != tool.KindNotStarted {
		t.Errorf("outcome %+v", o)
	}
}
