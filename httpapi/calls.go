package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

type callAtIn struct {
	ID   string `path:"id" maxLength:"200"`
	Wait string `query:"wait" maxLength:"20" doc:"wait this long, at most 1h, for the call to end: 30s"`
}

type byIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body *Note
}

// Note is who does something, and why.
type Note struct {
	By   string `json:"by,omitempty" doc:"a label; the principal's name where it is left out"`
	Note string `json:"note,omitempty"`
}

func (n *Note) orNone() Note {
	if n == nil {
		return Note{}
	}
	return *n
}

const noteShape = `{"by":"ana","note":"why"}, or nothing`

func (s *Server) registerCalls() {
	add(s, route{method: http.MethodGet, path: "/v1/calls/{id}", id: "getCall", summary: "One call, now or once it has ended"}, s.getCall)
	add(s, route{method: http.MethodDelete, path: "/v1/calls/{id}", id: "withdrawCall", summary: "Take a pending call back, also one that is approved and was not started", scopes: agentsAndOps},
		s.withdrawCall)
	add(s, route{
		method: http.MethodPost, path: "/v1/calls", id: "reserveCall", status: http.StatusCreated, scopes: agents,
		summary: "Reserve an attempt at a call that the client itself carries out. 202: it waits for a person; 200: it was refused",
		shape:   `{"tool":"refund","args":{}} for a new call, or {"call_id":"call_…"} for one that was approved`,
	}, s.reserve)
	add(s, route{
		method: http.MethodPost, path: "/v1/calls/{id}/confirm", id: "confirmCall", summary: "Record how a reserved attempt went", scopes: agents,
		shape: `{"fence":1,"status":"succeeded","result":…} or {"fence":1,"status":"failed","message":"…"}`,
	}, s.confirm)
	add(s, route{
		method: http.MethodPost, path: "/v1/calls/{id}/renew", id: "renewCall", summary: "Extend the lease of a reserved attempt", scopes: agents,
		shape: `{"fence":1}`,
	}, s.renew)
}

// wholeCall is a call as a reader sees it.
type wholeCall struct {
	call.Call
	attempts []call.Attempt
	stream   string
	stuck    string       // why the daemon does not go on with it
	seq      int64        // of the last event of its stream when it was read
	at       event.Cursor // behind that
	hiding   hiding
}

func (s *Server) readCall(ctx context.Context, c caller, id string) (k *wholeCall, err error) {
	err = txn.View(ctx, s.c.Store, func(tx call.Tx) error {
		k = &wholeCall{}
		if k.Call, err = tx.Call(id); err != nil {
			return err
		}
		if k.Space != s.c.Space || !c.reads() && k.Principal != c.Principal {
			return hidden("call", id)
		}
		if k.attempts, err = tx.Attempts(id); err != nil {
			return err
		}
		if k.stuck, err = s.stuck(tx, k.Call); err != nil {
			return err
		}
		k.stream = k.Stream()
		h, err := tx.Head(k.stream)
		k.seq, k.at = h.Seq, event.CursorAt(h)
		return err
	})
	return k, err
}

// callObject hides secrets from whoever did not bring them.
func (s *Server) callObject(ctx context.Context, c caller, k *wholeCall) (call.Object, error) {
	o := k.Object(k.attempts)
	o.Stuck = k.stuck
	if c.brought(k.Principal) {
		return o, nil
	}
	m, err := s.callMask(ctx, k)
	if err != nil {
		return call.Object{}, err
	}
	o.Message, o.Stuck = m.Text(o.Message), m.Text(o.Stuck)
	o.Args, o.Result = hide(m.JSON, o.Args), hide(m.Scrub, o.Result)
	for i := range o.Attempts {
		o.Attempts[i].EditedArgs = hide(m.JSON, o.Attempts[i].EditedArgs)
	}
	return o, nil
}

// answerCall is the answer with a call, or why there is none.
//
//go:noinline as it would lie on the stacks of all who wait
func (s *Server) answerCall(ctx context.Context, c caller, k *wholeCall, err error) (*body[call.Object], error) {
	if err != nil {
		return nil, err
	}
	return answer(s.callObject(ctx, c, k))
}

func (s *Server) getCall(ctx context.Context, c caller, in *callAtIn) (*body[call.Object], error) {
	until, err := deadline(in.Wait)
	if err != nil {
		return nil, err
	}
	k, err := s.readCall(ctx, c, in.ID)
	if err == nil && in.Wait != "" && !k.Status.Terminal() {
		k, err = s.callEnded(ctx, c, k, until)
	}
	return s.answerCall(ctx, c, k, err)
}

// deadline reads how long a client wants to wait.
func deadline(wait string) (time.Time, error) {
	if wait == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(wait)
	if err != nil || d < 0 || d > MaxWait {
		return time.Time{}, ErrMalformed.Say("query.wait: %q is no time from 0s to %s.", wait, MaxWait).Hint("Write it like wait=30s.")
	}
	return time.Now().Add(d), nil
}

func (s *Server) withdrawCall(ctx context.Context, c caller, in *callAtIn) (*body[call.Object], error) {
	k, err := s.readCall(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	if k.ApprovalID == "" || k.Status != call.Pending && k.Status != call.Unknown {
		return nil, call.ErrRunState.Say("Call %s is %s; there is nothing to take back.", k.ID, k.Status)
	}
	if err := s.takeBack(ctx, c, k.Call); err != nil {
		return nil, err
	}
	k, err = s.readCall(ctx, c, in.ID)
	return s.answerCall(ctx, c, k, err)
}

// takeBack withdraws the request of a call, or a yes that nobody has acted on.
func (s *Server) takeBack(ctx context.Context, c caller, k call.Call) error {
	_, err := s.withdraw(ctx, c, k.ApprovalID, Note{})
	if st, ok := decision.StandingOf(err); !ok || st.Status != decision.Approved {
		return err
	}
	_, err = call.WithdrawGranted(ctx, s.operator(c), k.ApprovalID, c.Principal, "")
	return err
}

func (s *Server) withdraw(ctx context.Context, c caller, approvalID string, n Note) (decision.Decision, error) {
	op := s.operator(c)
	op.MayOwn = c.manages()
	return op.Withdraw(ctx, approvalID, c.byOr(n.By), n.Note)
}

// Reserving is what a client wants to carry out itself.
type Reserving struct {
	Tool   string          `json:"tool,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	RunID  string          `json:"run_id,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	// IdempotencyKey is sent as a header: the same request again reserves nothing more.
	IdempotencyKey string `json:"-"`
}

// Reserved is an attempt whose start is committed: the client carries it out, renews
// its lease, and confirms it. Without a fence nothing was reserved.
type Reserved struct {
	Result
	Fence      int64           `json:"fence,omitempty"`
	Attempt    int64           `json:"attempt,omitempty"`
	LeaseUntil string          `json:"lease_until,omitempty"`
	Args       json.RawMessage `json:"args,omitempty" doc:"to run with; a reviewer may have edited them"`
	Edited     bool            `json:"edited,omitempty"`
	Again      bool            `json:"again,omitempty" doc:"the attempt was handed over before, to a request with this key: carry it out only if that was you, and you have not begun"`
}

type reserveIn struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"by which the same request again is handed the same attempt, while that runs; one key for each executor"`
	Body Reserving
}

type reserveOut struct {
	Status int
	Body   Reserved
}

func (s *Server) reserve(ctx context.Context, c caller, in *reserveIn) (*reserveOut, error) {
	b := in.Body
	var h call.Handed
	var res call.Result
	var err error
	var opts []call.Option
	if in.Key != "" {
		opts = append(opts, call.WithIdempotencyKey("POST /v1/calls", in.Key))
	}
	switch {
	case b.CallID != "" && b.Tool == "" && b.Args == nil && b.RunID == "":
		h, res, err = s.callsFor(c).ReserveAgain(ctx, c.Principal, b.CallID, opts...)
	case b.CallID == "" && b.Tool != "" && b.Args != nil:
		if _, err := s.c.Tools.Lookup(b.Tool); err != nil {
			return nil, err
		}
		h, res, err = s.calls.Reserve(ctx, c.Principal, b.Tool, b.Args, append(opts, call.InRun(b.RunID))...)
	default:
		return nil, ErrMalformed.Say("body: it names neither just a call nor a tool with its args.").Hint("Send %s.", s.routes["POST /v1/calls"].shape)
	}
	if err == nil && h.Attempt.N > 0 && res.Status == call.Running {
		return &reserveOut{http.StatusCreated, reserved(h)}, nil
	}
	out, err := s.called(res, err)
	if err != nil {
		return nil, err
	}
	return &reserveOut{out.Status, Reserved{Result: out.Body}}, nil
}

func reserved(h call.Handed) Reserved {
	return Reserved{
		Result: Result{Status: call.Running, CallID: h.Call.ID, RunID: h.Call.RunID},
		Fence:  h.Attempt.Fence, Attempt: h.Attempt.N, LeaseUntil: txn.Stamp(h.Call.LeaseUntil), Args: h.Args, Edited: h.Attempt.Args != nil, Again: h.Again,
	}
}

// callsFor is the door for a caller: an admin acts on everybody's calls.
func (s *Server) callsFor(c caller) call.Server {
	if c.Scope == token.Admin {
		return s.calls.ForAll()
	}
	return s.calls
}

// Confirming is how a reserved attempt went.
type Confirming struct {
	Fence   int64           `json:"fence" minimum:"1"`
	Status  call.Status     `json:"status" enum:"succeeded,failed,unknown"`
	Result  json.RawMessage `json:"result,omitempty" doc:"one JSON value, of succeeded"`
	Message string          `json:"message,omitempty" doc:"of failed and unknown"`
}

type confirmIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body Confirming
}

func (s *Server) confirm(ctx context.Context, c caller, in *confirmIn) (*body[call.Object], error) {
	b := in.Body
	if b.Status == call.Succeeded && b.Result == nil {
		return nil, ErrMalformed.Say("body.result: expected required property result to be present with succeeded.")
	}
	out := call.Outcome{Status: b.Status, Message: b.Message, Result: b.Result}
	if _, err := s.callsFor(c).Confirm(ctx, c.Principal, in.ID, b.Fence, out); err != nil {
		return nil, err
	}
	k, err := s.readCall(ctx, c, in.ID)
	return s.answerCall(ctx, c, k, err)
}

// Fenced names a reserved attempt.
type Fenced struct {
	Fence int64 `json:"fence" minimum:"1"`
}

// Leased is how long an attempt is reserved.
type Leased struct {
	LeaseUntil string `json:"lease_until"`
}

type renewIn struct {
	ID   string `path:"id" maxLength:"200"`
	Body Fenced
}

func (s *Server) renew(ctx context.Context, c caller, in *renewIn) (*body[Leased], error) {
	until, err := s.callsFor(c).Renew(ctx, c.Principal, in.ID, in.Body.Fence)
	return answer(Leased{txn.Stamp(until)}, err)
}
