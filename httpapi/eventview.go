package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// eventView shows events to one caller. What others brought is shown without its
// secrets; that is only a view: the stored event stays as it is, and hash is its own.
type eventView struct {
	s     *Server
	c     caller
	roots map[string]rootView // by stream, of one page
}

// rootView is how the events of a stream are shown.
type rootView struct {
	own  bool          // the caller brought what is in them
	mask *display.Mask // knows the secrets of what the stream belongs to
}

func (s *Server) eventsFor(c caller) eventView {
	return eventView{s: s, c: c, roots: map[string]rootView{}}
}

func (v eventView) object(ctx context.Context, e event.Event, at event.Cursor) (event.Object, error) {
	o := e.Object(at)
	foreign := foreignMembers(e.Type)
	if !v.c.reads() || !hasAny(o.Payload, foreign) {
		return o, nil
	}
	root, err := v.root(ctx, e.Stream)
	if err != nil || root.own {
		return o, err
	}
	var how map[string]func([]byte) []byte
	switch e.Type {
	case event.DecisionRequested, event.DecisionResolved:
		how, err = v.ofQuestion(ctx, e.Subject)
	case event.JobOutput:
		printed := &display.Mask{}
		printed.Learn(e.Payload)
		how = map[string]func([]byte) []byte{"data": printed.Scrub, "message": printed.Scrub}
	default:
		how = map[string]func([]byte) []byte{}
		for _, name := range foreign {
			how[name] = root.mask.Scrub
		}
	}
	if err != nil {
		return o, err
	}
	o.Payload = display.Members(o.Payload, how)
	return o, nil
}

// foreignMembers are those of a payload that hold what others wrote. The rest are ids,
// digests and words of our own, which a secret must not be able to hide.
func foreignMembers(t event.Type) []string {
	switch t {
	case event.RunFinished: // its reason is a word of ours
		return nil
	case event.DecisionRequested:
		return []string{"form"}
	case event.DecisionResolved:
		return []string{"input"}
	case event.JobOutput:
		return []string{"data", "message"}
	}
	return []string{"reason", "message", "note"}
}

// root looks once for each page at what a stream belongs to.
func (v eventView) root(ctx context.Context, stream string) (rootView, error) {
	if r, ok := v.roots[stream]; ok {
		return r, nil
	}
	r := rootView{mask: &display.Mask{}}
	var err error
	switch noun, id := rootOf(stream); noun {
	case "call":
		r, err = v.call(ctx, id)
	case "run":
		r, err = v.run(ctx, id)
	case "job":
		r, err = v.job(ctx, id)
	}
	if errors.Is(err, decision.ErrNotFound) { // it was cleaned up meanwhile
		r, err = rootView{mask: &display.Mask{}}, nil
	}
	v.roots[stream] = r
	return r, err
}

func (v eventView) call(ctx context.Context, id string) (rootView, error) {
	k, err := v.s.readCall(ctx, v.c, id)
	if err != nil || v.c.brought(k.Principal) {
		return rootView{own: err == nil}, err
	}
	m, err := v.s.callMask(ctx, k)
	return rootView{mask: m}, err
}

func (v eventView) run(ctx context.Context, id string) (rootView, error) {
	r, _, err := v.s.readRun(ctx, v.c, id)
	if err != nil || v.c.brought(r.Principal) {
		return rootView{own: err == nil}, err
	}
	steps, err := v.s.steps(ctx, id)
	if err != nil {
		return rootView{}, err
	}
	m, err := v.s.runMask(ctx, steps)
	return rootView{mask: m}, err
}

func (v eventView) job(ctx context.Context, id string) (rootView, error) {
	r := rootView{mask: &display.Mask{}}
	err := txn.View(ctx, v.s.c.Store, func(tx job.Tx) error {
		j, err := tx.Job(id)
		r.own = err == nil && v.c.brought(j.Principal)
		return err
	})
	return r, err
}

// ofQuestion is how what an event tells of a question is shown to whoever did not ask it.
func (v eventView) ofQuestion(ctx context.Context, id string) (how map[string]func([]byte) []byte, err error) {
	err = txn.View(ctx, v.s.c.Store, func(tx job.Tx) error {
		how = nil
		d, err := tx.Decision(id)
		if errors.Is(err, decision.ErrNotFound) { // nothing says any more what in it is secret
			all := func([]byte) []byte { return []byte(`"` + display.Masked + `"`) }
			how = map[string]func([]byte) []byte{"input": all, "form": all}
			return nil
		}
		if err != nil {
			return err
		}
		own, err := v.s.askedFor(tx, v.c, d)
		if err == nil && !own {
			m := review.Mask(d)
			how = map[string]func([]byte) []byte{"input": m.JSON, "form": m.Schema}
		}
		return err
	})
	return how, err
}

// hasAny reports whether an object has one of these members.
func hasAny(doc json.RawMessage, names []string) bool {
	if len(doc) == 0 || len(names) == 0 {
		return false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		return false
	}
	for _, name := range names {
		if _, ok := members[name]; ok {
			return true
		}
	}
	return false
}
