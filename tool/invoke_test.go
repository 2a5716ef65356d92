package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// toolOf is a registered tool that does f.
func toolOf(t testing.TB, effect SideEffect, f RunnerFunc, change ...func(*Tool)) *Tool {
	t.Helper()
	tl := Tool{Spec: Spec{Name: "x", InputSchema: json.RawMessage(`{}`), SideEffect: effect, TimeoutMS: 1000}, Run: f}
	for _, c := range change {
		c(&tl)
	}
	r, err := NewRegistry(tl)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := r.Lookup("x")
	return got
}

func cancelSafe(t *Tool) { t.CancelSafe = true }

func returns(result string, err error) RunnerFunc {
	return func(context.Context, Call) (json.RawMessage, error) { return json.RawMessage(result), err }
}

// Every way in which a tool can end, for every class of tool: spec 1.1.
func TestInvokeOutcomes(t *testing.T) {
	t.Parallel()
	untilEnd := func(ctx context.Context, _ Call) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	disguised := func(ctx context.Context, _ Call) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, errors.New("signal: killed")
	}
	panics := func(context.Context, Call) (json.RawMessage, error) { panic("boom") }
	exits := func(context.Context, Call) (json.RawMessage, error) { runtime.Goexit(); return nil, nil }
	runtimePanic := func(_ context.Context, c Call) (json.RawMessage, error) {
		return c.Args[len(c.Args)+1:], nil
	}
	tests := []struct {
		name     string
		run      RunnerFunc
		harmless string // kind for a read_only tool; "" if succeeded
		other    string // kind for the others; a cancel-safe tool is harmless if it was stopped, and else one of them
		says     string
	}{
		{"result", returns(" {\"a\":1}\n", nil), "", "", ""},
		{"null", returns("null", nil), "", "", ""},
		{"error", returns("", errors.New("card declined")), KindToolError, KindToolError, "card declined"},
		{"error and result", returns("{}", errors.New("card declined")), KindToolError, KindToolError, "card declined"},
		{"not started", returns("", ErrNotStarted.Say("No such host.")), KindNotStarted, KindNotStarted, "No such host."},
		{"not started, wrapped", returns("", fmt.Errorf("dial: %w", ErrNotStarted)), KindNotStarted, KindNotStarted, "dial: "},
		{"unknown", returns("", ErrOutcomeUnknown.Say("Connection lost.")), KindToolError, KindUnknownOutcome, "Connection lost."},
		{"unknown, wrapped", returns("", fmt.Errorf("post: %w", ErrOutcomeUnknown)), KindToolError, KindUnknownOutcome, "post: "},
		{"its own context error", returns("", context.DeadlineExceeded), KindToolError, KindToolError, "deadline exceeded"},
		{"no result", returns("", nil), KindToolError, KindUnknownOutcome, "no result"},
		{"not JSON", returns("ok", nil), KindToolError, KindUnknownOutcome, "not exactly one JSON value"},
		{"two values", returns("1 2", nil), KindToolError, KindUnknownOutcome, "not exactly one JSON value"},
		{"invalid UTF-8", returns("\"\xff\"", nil), KindToolError, KindUnknownOutcome, "not exactly one JSON value"},
		{"duplicate keys", returns(`{"a":1,"a":1}`, nil), KindToolError, KindUnknownOutcome, "duplicate"},
		{"too large", returns(`"`+strings.Repeat("x", MaxResult)+`"`, nil), KindToolError, KindUnknownOutcome, "more than 1048576 bytes"},
		{"time-out", untilEnd, KindToolTimeout, KindUnknownOutcome, "did not end within its time limit of 1s"},
		{"time-out in other words", disguised, KindToolTimeout, KindUnknownOutcome, "did not end within its time limit of 1s"},
		{"panic", panics, KindToolPanic, KindUnknownOutcome, "panicked: boom"},
		{"runtime panic", runtimePanic, KindToolPanic, KindUnknownOutcome, "slice bounds out of range"},
		{"Goexit", exits, KindToolPanic, KindUnknownOutcome, "ended its goroutine"},
	}
	classes := []struct {
		name     string
		effect   SideEffect
		change   []func(*Tool)
		harmless func(name, kind string) bool
	}{
		{"read_only", ReadOnly, nil, func(string, string) bool { return true }},
		{"local", LocalMutation, nil, func(string, string) bool { return false }},
		{"remote", RemoteMutation, nil, func(string, string) bool { return false }},
		{"destructive", Destructive, nil, func(string, string) bool { return false }},
		{"destructive, cancel-safe", Destructive, []func(*Tool){cancelSafe}, func(name, kind string) bool {
			return kind == KindToolTimeout || kind == KindToolPanic || strings.HasPrefix(name, "unknown")
		}},
	}
	for _, tt := range tests {
		for _, class := range classes {
			t.Run(tt.name+"/"+class.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					tl := toolOf(t, class.effect, tt.run, class.change...)
					o := Invoke(t.Context(), tl, aCall(`{}`), nil)
					kind := tt.other
					if class.harmless(tt.name, tt.harmless) {
						kind = tt.harmless
					}
					status := Failed
					switch kind {
					case "":
						status = Succeeded
					case KindUnknownOutcome:
						status = Unknown
					}
					if o.Status != status || o.Kind != kind || !strings.Contains(o.Message, tt.says) {
						t.Errorf("Invoke = %+v; want %s %s that says %q", o, status, kind, tt.says)
					}
					if (o.Result != nil) != (status == Succeeded) || (o.Message == "") != (status == Succeeded) {
						t.Errorf("Invoke = %+v", o)
					}
					synctest.Wait()
				})
			})
		}
	}
}

// What cancel-safe promises is about a tool that was stopped, not about one that
// ended by itself and cannot be understood.
func TestCancelSafeCoversOnlyAToolThatWasStopped(t *testing.T) {
	t.Parallel()
	answering := func(status int) RunnerFunc {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, "done")
		}).Run
	}
	slowBody := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}).Run
	returnsLate := func(err error) RunnerFunc {
		return func(ctx context.Context, _ Call) (json.RawMessage, error) { <-ctx.Done(); return nil, err }
	}
	unencodable := MustNew("f", "x", Destructive, func(context.Context, struct{}) (string, error) { return "\xff", nil }, nil)
	for _, tt := range []struct {
		name string
		run  RunnerFunc
		want OutcomeStatus
	}{
		{"exit 0 without a result", shell(t, `exit 0`).Run, Unknown},
		{"exit 0 with a text", shell(t, `echo done`).Run, Unknown},
		{"killed", helperExec(t, "kill").Run, Failed},
		{"HTTP 200 without JSON", answering(200), Unknown},
		{"HTTP 500, which counts as a lost connection", answering(500), Failed},
		{"a function's result", unencodable.Run.Run, Unknown},
		{"does not know", returns("", ErrOutcomeUnknown), Failed},
		{"does not know, when its time was up", returnsLate(ErrOutcomeUnknown), Failed},
	} {
		o := Invoke(t.Context(), toolOf(t, Destructive, tt.run, cancelSafe), aCall(`{}`), nil)
		if o.Status != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, o, tt.want)
		}
		if o := Invoke(t.Context(), toolOf(t, ReadOnly, tt.run), aCall(`{}`), nil); o.Status != Failed {
			t.Errorf("%s, read_only: %+v", tt.name, o)
		}
	}
	// A connection that was lost in the body of an answer was lost.
	tl := toolOf(t, Destructive, slowBody, cancelSafe)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errTimeLimit)
	defer cancel()
	_, err := tl.Run.Run(ctx, aCall(`{}`))
	if o := tl.ofError(err, context.Cause(ctx)); o.Status != Failed {
		t.Errorf("HTTP 200, cut off in its body: %v: %+v", err, o)
	}
}

// Case 078: a tool with a limit of 1 s that ignores it for 5 s.
func TestCase078ToolIgnoresItsTimeLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		result string
		err    error
		want   Outcome
	}{
		{"and succeeds", `{"id":1}`, nil, Outcome{Status: Succeeded, Result: json.RawMessage(`{"id":1}`)}},
		{"and says that nothing was begun", "", ErrNotStarted, Outcome{Status: Failed, Kind: KindNotStarted, Message: ErrNotStarted.Message}},
		{"and does not know", "", ErrOutcomeUnknown, Outcome{Status: Unknown, Kind: KindUnknownOutcome, Message: ErrOutcomeUnknown.Message}},
		// It may only be the end of its context in other words.
		{"and returns an error", "", errors.New("declined"), Outcome{
			Status: Unknown, Kind: KindUnknownOutcome,
			Message: "The tool did not end within its time limit of 1s. It returned: declined",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tl := toolOf(t, RemoteMutation, func(context.Context, Call) (json.RawMessage, error) {
					time.Sleep(5 * time.Second)
					return json.RawMessage(tt.result), tt.err
				})
				late := make(chan Outcome, 2)
				start := time.Now()
				o := Invoke(t.Context(), tl, aCall(`{}`), func(o Outcome) { late <- o })
				if took := time.Since(start); took != time.Second {
					t.Errorf("Invoke returned after %s", took)
				}
				if o.Status != Unknown || !o.Running || len(late) != 0 {
					t.Errorf("Invoke = %+v, late %d times", o, len(late))
				}
				time.Sleep(10 * time.Second)
				got := <-late
				if got.Status != tt.want.Status || got.Kind != tt.want.Kind ||
					got.Message != tt.want.Message || string(got.Result) != string(tt.want.Result) || len(late) != 0 || got.Running {
					t.Errorf("late: %+v and %d more, want %+v once", got, len(late), tt.want)
				}
			})
		})
	}
}

func TestInvokeLatePanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tl := toolOf(t, RemoteMutation, func(context.Context, Call) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			panic("too late")
		})
		late := make(chan Outcome, 2)
		Invoke(t.Context(), tl, aCall(`{}`), func(o Outcome) { late <- o })
		Invoke(t.Context(), tl, aCall(`{}`), nil) // nobody listens
		time.Sleep(10 * time.Second)
		if o := <-late; o.Status != Unknown || !strings.Contains(o.Message, "panicked: too late") || len(late) != 0 {
			t.Errorf("late: %+v and %d more", o, len(late))
		}
	})
}

func TestInvokeCancelled(t *testing.T) {
	t.Parallel()
	leaseLost := errors.New("the lease was lost\x1b[2J")
	for _, tt := range []struct {
		name   string
		cause  error
		effect SideEffect
		status OutcomeStatus
		kind   string
		says   string
	}{
		{"mutation", nil, RemoteMutation, Unknown, KindUnknownOutcome, "its caller cancelled it"},
		{"read_only", nil, ReadOnly, Failed, KindToolError, "its caller cancelled it"},
		{"with a cause", leaseLost, RemoteMutation, Unknown, KindUnknownOutcome, `the lease was lost\x1b[2J`},
		{"deadline of the caller", context.DeadlineExceeded, ReadOnly, Failed, KindToolTimeout, "its caller's deadline had passed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				release := make(chan struct{})
				late := make(chan Outcome, 1)
				tl := toolOf(t, tt.effect, func(context.Context, Call) (json.RawMessage, error) {
					cancel(tt.cause)
					<-release
					return json.RawMessage(`1`), nil
				})
				o := Invoke(ctx, tl, aCall(`{}`), func(o Outcome) { late <- o })
				if o.Status != tt.status || o.Kind != tt.kind || !strings.Contains(o.Message, tt.says) {
					t.Errorf("Invoke = %+v", o)
				}
				close(release)
				if o := <-late; o.Status != Succeeded {
					t.Errorf("late: %+v", o)
				}
			})
		})
	}
}

func TestInvokeDoesNotStartUnderAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tl := toolOf(t, RemoteMutation, func(context.Context, Call) (json.RawMessage, error) {
		t.Error("it was started")
		return nil, nil
	})
	if o := Invoke(ctx, tl, aCall(`{}`), nil); o.Status != Failed || o.Kind != KindNotStarted {
		t.Errorf("Invoke = %+v", o)
	}
}

func TestInvokeOfAToolThatWasNotRegistered(t *testing.T) {
	t.Parallel()
	if o := Invoke(t.Context(), &Tool{}, aCall(`{}`), nil); o.Kind != KindNotStarted {
		t.Errorf("nothing to run: %+v", o)
	}
	if o := Invoke(t.Context(), &Tool{Run: returns("1", nil)}, aCall(`{}`), nil); o.Status != Succeeded {
		t.Errorf("no time limit given: %+v", o)
	}
	tl := &Tool{Spec: Spec{InputSchema: json.RawMessage(refundSchema)}}
	if err := tl.CheckArgs([]byte(`{}`)); !errors.Is(err, ErrInvalidArguments) {
		t.Errorf("CheckArgs: %v", err)
	}
	if err := (&Tool{}).CheckArgs([]byte(`{}`)); !errors.Is(err, ErrInvalidTool) {
		t.Errorf("CheckArgs without a schema: %v", err)
	}
}

func TestInvokeGivesTheToolItsOwnArguments(t *testing.T) {
	t.Parallel()
	args := []byte(`{"a": 1.0}`)
	c := aCall("")
	c.Args = args
	tl := toolOf(t, RemoteMutation, func(ctx context.Context, c Call) (json.RawMessage, error) {
		if string(c.Args) != `{"a": 1.0}` || c.CallID != "call_7" || c.RunID != "run_3" || c.Attempt != 2 {
			t.Errorf("the tool got %+v", c)
		}
		result := json.RawMessage(c.Args)
		copy(c.Args, `{"b": 2.0}`)
		return result, nil
	})
	o := Invoke(t.Context(), tl, c, nil)
	if string(args) != `{"a": 1.0}` {
		t.Error("the tool changed the recorded arguments")
	}
	if string(o.Result) != `{"b": 2.0}` {
		t.Errorf("result %s", o.Result)
	}
}

func TestInvokeKeepsTheResultToItself(t *testing.T) {
	t.Parallel()
	shared := []byte(`{"a":1}`)
	tl := toolOf(t, ReadOnly, func(context.Context, Call) (json.RawMessage, error) { return shared, nil })
	o := Invoke(t.Context(), tl, aCall(`{}`), nil)
	copy(shared, `{"a":2}`)
	if string(o.Result) != `{"a":1}` {
		t.Error("the tool changed its result afterwards")
	}
}

func TestInvokeMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"case 106: \xff!", "case 106: \uFFFD! [altered: bytes that are no text were replaced]"},
		{"a\x00b", "a\uFFFDb [altered: bytes that are no text were replaced]"},
		{"", ""},
	} {
		o := Invoke(t.Context(), toolOf(t, ReadOnly, returns("", errors.New(tt.in))), aCall(`{}`), nil)
		if o.Message != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, o.Message, tt.want)
		}
	}
	for _, long := range []string{strings.Repeat("é", 1<<20), strings.Repeat("x", 1<<20), strings.Repeat("a\xff", 1<<20), strings.Repeat("\xff", 1<<20)} {
		o := Invoke(t.Context(), toolOf(t, ReadOnly, returns("", errors.New(long))), aCall(`{}`), nil)
		if len(o.Message) > maxMessage || !utf8.ValidString(o.Message) {
			t.Errorf("%d bytes, valid: %v", len(o.Message), utf8.ValidString(o.Message))
		}
	}
	o := Invoke(t.Context(), toolOf(t, ReadOnly, func(context.Context, Call) (json.RawMessage, error) {
		panic(strings.Repeat("p", 1<<20) + "\xff")
	}), aCall(`{}`), nil)
	if len(o.Message) > maxMessage || !strings.HasPrefix(o.Message, "The tool panicked: ppp") {
		t.Errorf("a long panic: %d bytes, %.40q", len(o.Message), o.Message)
	}
}

func TestInvokePanicStack(t *testing.T) {
	t.Parallel()
	o := Invoke(t.Context(), toolOf(t, ReadOnly, func(context.Context, Call) (json.RawMessage, error) {
		panicsHere()
		return nil, nil
	}), aCall(`{}`), nil)
	if strings.Contains(o.Message, "goroutine") || strings.Contains(o.Message, ".go:") {
		t.Errorf("the message has the stack: %s", o.Message)
	}
	if !strings.HasPrefix(o.Stack, "github.com/placet-dev/placet/tool.panicsHere(") {
		t.Errorf("the stack does not begin where it panicked:\n%s", o.Stack)
	}
	if b, _ := json.Marshal(o); strings.Contains(string(b), "panicsHere") {
		t.Errorf("the stack is encoded: %s", b)
	}
}

//go:noinline
func panicsHere() { panic(errors.New("here")) }

func TestInvokeConcurrently(t *testing.T) {
	t.Parallel()
	tl := toolOf(t, RemoteMutation, func(_ context.Context, c Call) (json.RawMessage, error) { return c.Args, nil })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"n":%d}`, i)
			if o := Invoke(t.Context(), tl, aCall(args), nil); string(o.Result) != args {
				t.Errorf("%s became %+v", args, o)
			}
		})
	}
	wg.Wait()
}

// The end of the context and of the tool, at the same moment, many times: late is
// called if and only if the outcome says that the tool still runs.
func TestInvokeAtTheDeadline(t *testing.T) {
	t.Parallel()
	for i := range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan Outcome, 1)
		tl := toolOf(t, RemoteMutation, func(context.Context, Call) (json.RawMessage, error) {
			cancel()
			if i%2 == 0 {
				return nil, context.Canceled
			}
			return json.RawMessage(`1`), nil
		})
		want := []OutcomeStatus{Unknown, Succeeded}[i%2]
		o := Invoke(ctx, tl, aCall(`{}`), func(o Outcome) { late <- o })
		if o.Running {
			if o.Status != Unknown {
				t.Fatalf("%+v", o)
			}
			o = <-late
		}
		if o.Status != want || o.Running {
			t.Fatalf("%+v, want %s", o, want)
		}
		if len(late) != 0 {
			t.Fatalf("late %+v after %+v", <-late, o)
		}
	}
}

func TestInvokeProbe(t *testing.T) {
	t.Parallel()
	probeOf := func(f ProberFunc) *Tool {
		return toolOf(t, RemoteMutation, returns("1", nil), func(tl *Tool) {
			if f != nil {
				tl.Probe = f
			}
		})
	}
	answers := func(r ProbeResult, err error) ProberFunc {
		return func(context.Context, Call) (ProbeResult, error) { return r, err }
	}
	for _, tt := range []struct {
		name  string
		probe ProberFunc
		want  ProbeResult
		says  string
	}{
		{"succeeded", answers(ProbeResult{Outcome: ProbeSucceeded, Result: json.RawMessage(" 1 "), Message: "x"}, nil), ProbeResult{Outcome: ProbeSucceeded, Result: json.RawMessage("1")}, ""},
		{"failed", answers(ProbeResult{Outcome: ProbeFailed, Message: "a\xff"}, nil), ProbeResult{Outcome: ProbeFailed, Message: "a\uFFFD" + alteredNote}, ""},
		{"failed without a word", answers(ProbeResult{Outcome: ProbeFailed}, nil), ProbeResult{Outcome: ProbeFailed, Message: "The probe found that the call failed."}, ""},
		{"not found", answers(ProbeResult{Outcome: ProbeNotFound, Result: json.RawMessage("1")}, nil), ProbeResult{Outcome: ProbeNotFound}, ""},
		{"no probe", nil, ProbeResult{}, "has no probe"},
		{"error", answers(ProbeResult{Outcome: ProbeSucceeded, Result: json.RawMessage("1")}, errors.New("no route")), ProbeResult{}, "no route"},
		{"succeeded without a result", answers(ProbeResult{Outcome: ProbeSucceeded}, nil), ProbeResult{}, "no result"},
		{"succeeded with no JSON", answers(ProbeResult{Outcome: ProbeSucceeded, Result: json.RawMessage("x")}, nil), ProbeResult{}, "not exactly one"},
		{"another word", answers(ProbeResult{Outcome: "running"}, nil), ProbeResult{}, `answered "running"`},
		{"no word", answers(ProbeResult{}, nil), ProbeResult{}, `answered ""`},
		{"panic", func(context.Context, Call) (ProbeResult, error) { panic("boom") }, ProbeResult{}, "panicked: boom"},
		{"Goexit", func(context.Context, Call) (ProbeResult, error) { runtime.Goexit(); return ProbeResult{}, nil }, ProbeResult{}, "ended its goroutine"},
	} {
		got, err := InvokeProbe(t.Context(), probeOf(tt.probe), aCall(`{}`))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) ||
			got.Outcome != tt.want.Outcome || string(got.Result) != string(tt.want.Result) || got.Message != tt.want.Message {
			t.Errorf("%s: InvokeProbe = %+v, %v", tt.name, got, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tl := probeOf(func(context.Context, Call) (ProbeResult, error) {
			time.Sleep(time.Minute)
			return ProbeResult{Outcome: ProbeNotFound}, nil
		})
		if r, err := InvokeProbe(t.Context(), tl, aCall(`{}`)); err == nil || r.Outcome != "" {
			t.Errorf("a probe that hangs: %+v, %v", r, err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("took %s", took)
		}
		time.Sleep(time.Minute)
	})
}
