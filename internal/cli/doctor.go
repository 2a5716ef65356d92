package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look at the store and the configuration, and say what needs attention",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	}
}

// finding is one line of a doctor's list. state is ok, attention, or note for
// what is no fault and worth knowing.
type finding struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Text  string `json:"text"`
}

const (
	stateOK        = "ok"
	stateAttention = "attention"
	stateNote      = "note"
)

type findings struct{ list []finding }

func (f *findings) ok(name, format string, args ...any) {
	f.list = append(f.list, finding{name, stateOK, fmt.Sprintf(format, args...)})
}

func (f *findings) attention(name, format string, args ...any) {
	f.list = append(f.list, finding{name, stateAttention, fmt.Sprintf(format, args...)})
}

func (f *findings) note(name, format string, args ...any) {
	f.list = append(f.list, finding{name, stateNote, fmt.Sprintf(format, args...)})
}

// failed adds an error: what is wrong, and what to do.
func (f *findings) failed(name string, err error) {
	e := faultOf(err)
	f.attention(name, "%s", strings.TrimSpace(e.Message+" "+e.Advice))
}

func (f *findings) sound() bool {
	for _, x := range f.list {
		if x.State == stateAttention {
			return false
		}
	}
	return true
}

func (a *app) doctor(ctx context.Context) error {
	var f findings
	conf := a.lookConfig(&f)
	a.lookStore(ctx, &f, conf)
	a.lookDaemon(ctx, &f)
	a.tellFindings(f)
	if !f.sound() {
		return exitCode(exitFailed)
	}
	return nil
}

func (a *app) tellFindings(f findings) {
	if a.json {
		a.emit(struct {
			OK     bool      `json:"ok"`
			Checks []finding `json:"checks"`
		}{f.sound(), f.list})
		return
	}
	for _, x := range f.list {
		a.say("%-10s %-14s %s", safe(x.State), safe(x.Name), own(x.Text))
	}
}

func (a *app) lookConfig(f *findings) *config.Config {
	conf, err := a.load()
	switch {
	case err != nil:
		for _, l := range strings.Split(faultOf(err).Message, "\n") {
			f.attention("configuration", "%s", l)
		}
		return nil
	case conf.Path == "":
		f.note("configuration", "There is none: placet init writes an example, --config FILE names another.")
	default:
		f.ok("configuration", "%s, with %s", conf.Path, holds(conf))
	}
	return conf
}

func (a *app) lookStore(ctx context.Context, f *findings, conf *config.Config) {
	p, err := a.place()
	if err == nil {
		err = p.Absent()
	}
	if err != nil {
		f.failed("store", err)
		return
	}
	a.lookWay(f, p)
	r, err := p.Check(ctx)
	if err != nil {
		f.failed("store", err)
		return
	}
	lookReport(f, r)
	if path, file := p.File(); file {
		lookOwner(f, path)
	}
	st, err := a.read(ctx)
	if err != nil {
		f.failed("store", err)
		return
	}
	defer st.Close()
	if err := lookWork(ctx, f, st, conf); err != nil {
		f.failed("work", err)
	}
	if err := lookDeliveries(ctx, f, st); err != nil {
		f.failed("deliveries", err)
	}
	if err := a.lookHomes(ctx, f, st); err != nil {
		f.failed("homes", err)
	}
}

func lookReport(f *findings, r place.Report) {
	f.ok("store", "%s, epoch %d, %d events", r.Place, r.Epoch, r.Events)
	if r.Schema == r.Newest {
		f.ok("schema", "%d, which is this program's", r.Schema)
	}
	for _, p := range r.Problems {
		f.attention("integrity", "%s", p)
	}
	switch {
	case !r.OK():
	case r.SQLite != nil:
		f.ok("integrity", "every page, index and reference holds")
	default:
		f.ok("integrity", "nothing is wrong")
	}
	lookServer(f, r)
	if !r.RestoredAt.IsZero() {
		to := ""
		if !r.RestoredTo.IsZero() {
			to = ", to " + stamp(r.RestoredTo)
		}
		f.note("restored", "at %s%s: what was approved before then and not used needs a new yes, except for tools that declare idempotency", stamp(r.RestoredAt), to)
	}
}

// lookOwner tells what the store cannot protect against (design §7).
func lookOwner(f *findings, path string) {
	fi, err := os.Stat(path)
	if err != nil {
		return
	}
	if dir, err := os.Stat(filepath.Dir(path)); err == nil && dir.Mode().Perm()&0o002 != 0 && dir.Mode()&os.ModeSticky == 0 {
		f.attention("permissions", "the folder %s can be written by everybody: chmod o-w it", filepath.Dir(path))
	}
	if fi.Mode().Perm()&0o077 == 0 {
		f.ok("permissions", "only its owner can read and write the file")
	}
	if s, ok := fi.Sys().(*syscall.Stat_t); ok && int(s.Uid) == os.Getuid() {
		f.note("owner", "You own the file (uid %d). An agent that runs as you could decide for itself: give it another user. Decisions made here say verified: false.", s.Uid)
	}
}

// listed is how many rows of a kind are looked at.
const listed = 500

func lookWork(ctx context.Context, f *findings, st *store.Store, conf *config.Config) error {
	var pending, granted []decision.Decision
	var unknown, refused, lost []call.Call
	var adrift []run.Run
	var served []servedCall
	overdue := 0
	err := txn.View(ctx, st, func(tx run.Tx) (err error) {
		q := decision.Query{Space: event.MainSpace, Type: decision.Approval, Status: decision.Pending, Open: true, Limit: listed}
		if pending, err = tx.Decisions(q); err != nil {
			return err
		}
		overdue = 0
		for _, d := range pending {
			if d.Overdue(tx.Now()) {
				overdue++
			}
		}
		q.Status = decision.Approved
		if granted, err = tx.Decisions(q); err != nil {
			return err
		}
		if granted, served, err = apart(tx, granted); err != nil {
			return err
		}
		if unknown, refused, err = unknownCalls(tx); err != nil {
			return err
		}
		if lost, err = tx.LeaseEnded(event.MainSpace, tx.Now(), "", listed); err != nil {
			return err
		}
		adrift, err = tx.Adrift(event.MainSpace, tx.Now(), "", listed)
		return err
	})
	if err != nil {
		return err
	}
	lookServed(f, served, conf)
	f.ok("pending", "%s waiting for a person", upTo(len(pending), "approval"))
	if overdue > 0 {
		f.attention("overdue", "%s past the deadline: deciding or resuming ends it", upTo(overdue, "approval"))
	}
	lookGrants(f, granted, conf)
	for _, g := range byWay(unknown) {
		f.attention("unknown", "%s with an unknown outcome, such as %s: %s", upTo(len(g.calls), "call"), g.calls[0].ID, g.settles())
	}
	if n := len(refused); n > 0 {
		f.note("unknown", "%s with an unknown outcome that nobody agreed to run again, such as %s", upTo(n, "call"), refused[0].ID)
	}
	for _, g := range byWay(lost) {
		f.attention("lost", "%s of a process that is gone, such as %s: %s", upTo(len(g.calls), "call"), g.calls[0].ID, g.settles())
	}
	if n := len(adrift); n > 0 {
		f.attention("adrift", "%s that nobody works on, such as %s: placet run resume %[2]s goes on", upTo(n, "run"), adrift[0].ID)
	}
	return nil
}

// goingOn are calls with one way to go on.
type goingOn struct {
	way   review.Way
	calls []call.Call
}

func byWay(cs []call.Call) (groups []goingOn) {
	for w := review.ByCaller; w <= review.ByReserver; w++ {
		g := goingOn{way: w}
		for _, c := range cs {
			if review.WayOf(c) == w {
				g.calls = append(g.calls, c)
			}
		}
		if len(g.calls) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// settles says what finds out how the first of them ended.
func (g goingOn) settles() string {
	c := g.calls[0]
	switch g.way {
	case review.ByStarter:
		return "placet run resume " + c.RunID + " finds out"
	case review.ByDaemon:
		return "it came in over HTTP, so placet serve finds out; where it asks a person, placet show " + c.ID + " has the approval to decide"
	case review.ByReserver:
		return "the program that reserved it over HTTP says how it went: POST /v1/calls/" + c.ID + "/confirm"
	}
	return "placet resume " + c.ID + " asks again, or names the approval to decide"
}

// unknownCalls lists the calls of unknown outcome; apart are those about which the
// last word was a no, or none in time: nothing is left to be done about them.
func unknownCalls(tx call.Tx) (open, refused []call.Call, err error) {
	all, err := tx.Calls(call.Query{Space: event.MainSpace, Status: call.Unknown, Limit: listed})
	for _, c := range all {
		var d decision.Decision
		if c.ApprovalID != "" {
			if d, err = tx.Decision(c.ApprovalID); err != nil {
				return nil, nil, err
			}
		}
		if notAgain(d) {
			refused = append(refused, c)
		} else {
			open = append(open, c)
		}
	}
	return open, refused, err
}

// upTo is a count that stopped at the limit of what was looked at.
func upTo(n int, noun string) string {
	if n == listed {
		return fmt.Sprintf("%d or more %ss", n, noun)
	}
	return string(count(n, noun, noun+"s"))
}

// lookGrants finds approved work that nobody with this configuration can run.
func lookGrants(f *findings, granted []decision.Decision, conf *config.Config) {
	yeses := string(count(len(granted), "yes", "yeses"))
	if len(granted) == listed {
		yeses = fmt.Sprintf("%d or more yeses", listed)
	}
	f.ok("approved", "%s not used yet", yeses)
	if conf == nil {
		return
	}
	for _, d := range granted {
		if d.Tool == "" { // a flow's: nothing runs by it
			continue
		}
		t, err := conf.Tools.Lookup(d.Tool)
		switch {
		case err != nil:
			f.attention("no tool", "%s is approved, and the configuration has no tool %s", d.ID, d.Tool)
		case t.SpecDigest() != d.SpecDigest:
			f.attention("changed tool", "%s is approved, and the tool %s has changed since: resuming asks again", d.ID, d.Tool)
		}
	}
}

// lookDeliveries counts what was given up, and tells of targets that are disabled.
func lookDeliveries(ctx context.Context, f *findings, st *store.Store) error {
	var n map[delivery.Status]int64
	var targets []delivery.Target
	err := txn.View(ctx, st, func(tx delivery.Tx) (err error) {
		if n, err = tx.CountDeliveries(event.MainSpace); err != nil {
			return err
		}
		targets, err = tx.Targets(delivery.TargetQuery{Space: event.MainSpace, Limit: listed})
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range targets {
		if !t.DisabledAt.IsZero() {
			f.attention("wake target", "%s is disabled (%s): placet wake enable %s puts it in use again", t.ID, strings.TrimSuffix(t.Disabled, "."), t.ID)
		}
	}
	if dead := n[delivery.Dead]; dead > 0 {
		f.attention("deliveries", "%s given up: placet deliveries --status dead lists them, placet deliveries retry tries one again", count(int(dead), "was", "were"))
		return nil
	}
	open := n[delivery.Pending] + n[delivery.Dispatching] + n[delivery.Retrying]
	f.ok("deliveries", "%s on the way, none given up", count(int(open), "is", "are"))
	return nil
}
