package tool

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/canon"
)

type refundIn struct {
	OrderID string `json:"order_id" jsonschema:"the order"`
	Amount  int64  `json:"amount"`
	Note    string `json:"note,omitempty"`
}

type refundOut struct {
	ID   string `json:"id"`
	Note string `json:"note"`
}

// typedTool is a registered tool that fn carries out.
func typedTool[In, Out any](t testing.TB, fn func(context.Context, In) (Out, error), o *Options) *Tool {
	t.Helper()
	tl, err := New("x", "A tool.", RemoteMutation, fn, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegistry(tl)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := r.Lookup("x")
	return got
}

func TestNewSchema(t *testing.T) {
	t.Parallel()
	tl := typedTool(t, func(context.Context, refundIn) (refundOut, error) { return refundOut{}, nil }, nil)
	got, err := canon.Canonical(tl.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"additionalProperties":false,"properties":{"amount":{"type":"integer"},"note":{"type":"string"},` +
		`"order_id":{"description":"the order","type":"string"}},"required":["order_id","amount"],"type":"object"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	// It is part of a digest, so it is always the same.
	for range 20 {
		again := typedTool(t, func(context.Context, refundIn) (refundOut, error) { return refundOut{}, nil }, nil)
		if again.SpecDigest() != tl.SpecDigest() {
			t.Fatal("the digest differs from time to time")
		}
	}
	if tl.Timeout() != DefaultTimeout {
		t.Errorf("time limit %s", tl.Timeout())
	}
}

func TestNewOptions(t *testing.T) {
	t.Parallel()
	probe := ProberFunc(func(context.Context, Call) (ProbeResult, error) { return ProbeResult{Outcome: ProbeNotFound}, nil })
	schema := json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"integer"}}}`)
	tl := typedTool(t, func(context.Context, refundIn) (refundOut, error) { return refundOut{}, nil }, &Options{
		Timeout: time.Minute, Confirm: true, Idempotent: true, CancelSafe: true, Cost: 3,
		Implementation: "v1.2", Probe: probe, InputSchema: schema,
	})
	if tl.TimeoutMS != 60_000 || !tl.Confirm || !tl.Idempotent || !tl.CancelSafe || tl.Cost != 3 ||
		tl.Implementation != "v1.2" || tl.Probe == nil || string(tl.InputSchema) != string(schema) {
		t.Errorf("%+v", tl)
	}
}

func TestNewRuns(t *testing.T) {
	t.Parallel()
	tl := typedTool(t, func(ctx context.Context, in refundIn) (refundOut, error) {
		c, ok := CallFrom(ctx)
		if !ok || c.CallID != "call_7" || c.Attempt != 2 || c.RunID != "run_3" {
			t.Errorf("CallFrom = %+v, %v", c, ok)
		}
		if in.Amount == 13 {
			return refundOut{}, errors.New("unlucky")
		}
		return refundOut{ID: in.OrderID, Note: "<&>\u2028" + in.Note}, nil
	}, nil)
	const args = `{"order_id":"o-7","amount":9007199254740993,"note":"\ud83d\ude00"}`
	if err := tl.CheckArgs([]byte(args)); err != nil {
		t.Fatal(err)
	}
	o := Invoke(t.Context(), tl, aCall(args), nil)
	if want := "{\"id\":\"o-7\",\"note\":\"<&>\u2028😀\"}"; string(o.Result) != want {
		t.Errorf("Invoke = %s %s, want %s", o.Result, o.Message, want)
	}
	o = Invoke(t.Context(), tl, aCall(`{"order_id":"o-7","amount":13}`), nil)
	if o.Kind != KindToolError || o.Message != "unlucky" {
		t.Errorf("Invoke = %+v", o)
	}
	if _, ok := CallFrom(t.Context()); ok {
		t.Error("CallFrom found a call outside of one")
	}
}

func TestNewDecodesStrictly(t *testing.T) {
	t.Parallel()
	anything := json.RawMessage(`{}`)
	tl := typedTool(t, func(context.Context, refundIn) (int, error) {
		t.Error("it ran")
		return 0, nil
	}, &Options{InputSchema: anything})
	for _, args := range []string{
		`{"order_id":"o","amount":1,"extra":1}`, `{"Order_ID":"o","amount":1}`, `{"order_id":"o","amount":1.5}`,
		`{"order_id":"o","amount":"1"}`, `{"order_id":1,"amount":1}`, `{"order_id":"o","amount":9223372036854775808}`,
		`{"order_id":"o","amount":1e30}`, `{"order_id":"o","amount":1e9999}`, `{"order_id":"o","amount":1e-9999}`,
		`[]`, `{"order_id":"o","order_id":"p"}`, "{\"order_id\":\"\xff\"}",
	} {
		o := Invoke(t.Context(), tl, aCall(args), nil)
		if o.Kind != KindNotStarted || !strings.Contains(o.Message, "do not fit its Go type") {
			t.Errorf("%s: %+v", args, o)
		}
	}
}

// Case 111: what the schema takes for an integer fits a Go integer.
func TestCase111TypedIntegers(t *testing.T) {
	t.Parallel()
	type cents int64
	type in struct {
		A int              `json:"a,omitzero"`
		B uint8            `json:"b,omitzero"`
		C cents            `json:"c,omitzero"`
		D *int32           `json:"d,omitzero"`
		E []int            `json:"e,omitzero"`
		F map[string]int64 `json:"f,omitzero"`
		G float64          `json:"g,omitzero"`
		H *big.Int         `json:"h,omitzero"`
		I json.RawMessage  `json:"i,omitzero"`
	}
	var got in
	tl := typedTool(t, func(_ context.Context, i in) (int, error) { got = i; return 0, nil }, nil)
	const args = `{"a":1e6,"b":2.50e2,"c":-1.0,"d":10e-1,"e":[999999,1E6,-0],"f":{"x":9007199254740993.0},"g":1e6,"h":123456789012345678901234567890,"i":[1.0]}`
	if err := tl.CheckArgs([]byte(args)); err != nil {
		t.Fatal(err)
	}
	if o := Invoke(t.Context(), tl, aCall(args), nil); o.Status != Succeeded {
		t.Fatal(o.Message)
	}
	if got.A != 1_000_000 || got.B != 250 || got.C != -1 || *got.D != 1 || got.E[1] != 1_000_000 || got.E[2] != 0 ||
		got.F["x"] != 9007199254740993 || got.G != 1e6 || got.H.String() != "123456789012345678901234567890" || string(got.I) != "[1.0]" {
		t.Errorf("%+v", got)
	}
	if err := tl.CheckArgs([]byte(`{"a":1.5}`)); err == nil {
		t.Error("1.5 was taken for an integer")
	}
	if err := tl.CheckArgs([]byte(`{"b":256}`)); err == nil {
		t.Error("256 was taken for a uint8")
	}
}

// Case 106: what cannot be encoded is not replaced.
func TestCase106TypedResult(t *testing.T) {
	t.Parallel()
	tl := typedTool(t, func(context.Context, struct{}) (string, error) { return "a\xff", nil }, nil)
	if o := Invoke(t.Context(), tl, aCall(`{}`), nil); o.Status != Unknown || !strings.Contains(o.Message, "cannot be encoded") {
		t.Errorf("%+v", o)
	}
	tl = typedTool(t, func(context.Context, struct{}) (chan int, error) { return make(chan int), nil }, nil)
	if o := Invoke(t.Context(), tl, aCall(`{}`), nil); o.Status != Unknown {
		t.Errorf("%+v", o)
	}
	tl = typedTool(t, func(context.Context, struct{}) (any, error) { return nil, nil }, nil)
	if o := Invoke(t.Context(), tl, aCall(`{}`), nil); string(o.Result) != "null" {
		t.Errorf("%+v", o)
	}
	tl = typedTool(t, func(context.Context, struct{}) (map[string]int, error) { return map[string]int{"b": 1, "a": 2}, nil }, nil)
	if o := Invoke(t.Context(), tl, aCall(`{}`), nil); string(o.Result) != `{"a":2,"b":1}` {
		t.Errorf("%+v", o)
	}
}

func TestNewAcceptsInputTypes(t *testing.T) {
	t.Parallel()
	typedTool(t, func(context.Context, map[string]string) (int, error) { return 0, nil }, nil)
	typedTool(t, func(context.Context, struct {
		When time.Time `json:"when"`
		Blob []byte    `json:"blob"`
		Any  any       `json:"any"`
		Ptr  *string   `json:"ptr"`
		List []string  `json:"list"`
	},
	) (int, error) {
		return 0, nil
	}, nil)
}

type tree struct {
	Children []tree `json:"children"`
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	refused := func(name, want string, err error) {
		t.Helper()
		if !errors.Is(err, ErrInvalidTool) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want one that says %q", name, err, want)
		}
	}
	_, err := New("x y", "", ReadOnly, func(context.Context, struct{}) (int, error) { return 0, nil }, nil)
	refused("name", "not allowed", err)
	_, err = New[struct{}, int]("x", "", ReadOnly, nil, nil)
	refused("no function", "nothing that carries it out", err)
	_, err = New("x", "", ReadOnly, func(context.Context, string) (int, error) { return 0, nil }, nil)
	refused("a string", "not a struct or a map", err)
	_, err = New("x", "", ReadOnly, func(context.Context, []string) (int, error) { return 0, nil }, nil)
	refused("a list", "not a struct or a map", err)
	_, err = New("x", "", ReadOnly, func(context.Context, struct{ C chan int }) (int, error) { return 0, nil }, nil)
	refused("a channel", "no schema can be made", err)
	_, err = New("x", "", ReadOnly, func(context.Context, tree) (int, error) { return 0, nil }, nil)
	refused("a recursive type", "no schema can be made", err)
	_, err = New("x", "", ReadOnly, func(context.Context, struct {
		N int `json:"n,string"`
	},
	) (int, error) {
		return 0, nil
	}, nil)
	refused("a number as a string", "give Options.InputSchema", err)
	_, err = New("x", "", ReadOnly, func(context.Context, struct{ D time.Duration }) (int, error) { return 0, nil }, nil)
	refused("a duration", "cannot be encoded", err)
	for _, d := range []time.Duration{-time.Second, time.Microsecond, 1500 * time.Microsecond, 25 * time.Hour} {
		_, err = New("x", "", ReadOnly, func(context.Context, struct{}) (int, error) { return 0, nil }, &Options{Timeout: d})
		refused(d.String(), "from 1 ms to 24 h", err)
	}
	_, err = New("x", "", ReadOnly, func(context.Context, struct{}) (int, error) { return 0, nil }, &Options{InputSchema: json.RawMessage(`{"$ref":"#"}`)})
	refused("schema", "refers to itself", err)
	defer func() {
		if recover() == nil {
			t.Error("MustNew did not panic")
		}
	}()
	MustNew("", "", ReadOnly, func(context.Context, struct{}) (int, error) { return 0, nil }, nil)
}

// Case 080: every attempt of a call gets the same key.
func TestCase080SameKeyOnEveryAttempt(t *testing.T) {
	t.Parallel()
	var keys []string
	tl := typedTool(t, func(ctx context.Context, _ struct{}) (int, error) {
		c, _ := CallFrom(ctx)
		keys = append(keys, c.CallID)
		return c.Attempt, nil
	}, &Options{Idempotent: true})
	for attempt := 1; attempt <= 2; attempt++ {
		c := aCall(`{}`)
		c.Attempt = attempt
		Invoke(t.Context(), tl, c, nil)
	}
	if strings.Join(keys, " ") != "call_7 call_7" {
		t.Errorf("keys %v", keys)
	}
}
