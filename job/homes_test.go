package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// town is several machines on one store, whose clock the test moves.
type town struct {
	*world
	more atomic.Int64
}

func (c *town) advance(d time.Duration) { c.more.Add(int64(d)) }

func newTown(t *testing.T) *town {
	t.Helper()
	c := &town{}
	c.world = setupAt(t, func() time.Time { return time.Now().Add(time.Duration(c.more.Load())) })
	return c
}

// machine is one of them: a home with a folder of its own.
type machine struct {
	*job.Supervisor
	id  string
	dir string
}

func (c *town) machine(host string, change ...func(*job.Config)) *machine {
	c.Helper()
	m := &machine{id: id.New(id.Home), dir: c.TempDir()}
	m.Supervisor = c.supervisor(append([]func(*job.Config){func(conf *job.Config) { conf.Dir, conf.Home, conf.Host = m.dir, m.id, host }}, change...)...)
	c.Cleanup(func() { // it ends what it runs, also what does not count any more
		ctx := context.WithoutCancel(c.ctx)
		js, err := m.List(ctx, job.Query{Active: true, Limit: 500})
		for _, j := range js {
			if m.Mine(j) && err == nil {
				_, err = m.Stop(ctx, j.ID, "test", time.Millisecond)
			}
		}
		if err != nil {
			c.Error(err)
		}
		m.Wait4Runners()
	})
	return m
}

func (c *town) keep(ms ...*machine) {
	c.Helper()
	for _, m := range ms {
		if err := m.KeepOnce(c.ctx); err != nil {
			c.Fatal(err)
		}
	}
}

// lose lets the time pass after which a home is lost, while those others are there.
func (c *town) lose(there ...*machine) {
	c.Helper()
	for range 4 {
		c.advance(25 * time.Second)
		for _, m := range there {
			if err := m.Hold(c.ctx); err != nil {
				c.Fatal(err)
			}
		}
	}
}

func (c *town) startAt(m *machine, spec job.Spec) job.Job {
	c.Helper()
	j, err := m.Start(c.ctx, job.Starting{Spec: spec})
	if err != nil {
		c.Fatal(err)
	}
	return j
}

func (c *town) homeOf(m *machine) (h job.Home) {
	c.Helper()
	err := txn.View(c.ctx, c.st, func(tx job.Tx) (err error) {
		h, err = tx.Home(m.id)
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	return h
}

// A job belongs to the machine that runs it. Another one sees it, stops it, and says
// where it is to whoever asks for what lies in its folder.
func TestJobElsewhere(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a, b := c.machine("alpha", func(conf *job.Config) { conf.URL = "https://alpha:7420" }), c.machine("beta")
	c.keep(a, b)
	j := c.startAt(a, command("echo"))
	if got, err := b.Get(c.ctx, j.ID); err != nil || got.Status != job.Running || got.Home != a.id || b.Mine(got) {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := b.Pass(c.ctx); err != nil {
		t.Fatal(err)
	}
	_, tail := b.Tail(c.ctx, j.ID, job.Tailing{Follow: true})
	for what, err := range map[string]error{"tail": tail, "send": b.Send(c.ctx, j.ID, []byte("x"), false)} {
		var at job.Elsewhere
		if !errors.Is(err, job.ErrElsewhere) || json.Unmarshal(fault.From(err).Details, &at) != nil ||
			at.JobID != j.ID || at.HomeID != a.id || at.Host != "alpha" || at.URL != "https://alpha:7420" || !at.Present {
			t.Errorf("%s: %v, %+v", what, err, at)
		}
	}
	c.loop(a.Supervisor)
	j, err := b.Stop(c.ctx, j.ID, "ana", 0)
	if err != nil || j.Status != job.Cancelled || j.StopBy != "ana" {
		t.Errorf("stopped: %+v, %v", j, err)
	}
	c.advance(time.Hour)
	if err := b.Send(c.ctx, j.ID, []byte("x"), false); !errors.Is(err, job.ErrRunState) {
		t.Errorf("to one that has ended: %v", err)
	}
}

// The jobs of a machine that died are orphaned by another one, once. What its daemon
// finds still running when it is back is ended, and changes nothing.
func TestLostMachine(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a, b := c.machine("alpha"), c.machine("beta")
	c.keep(a, b)
	running := c.startAt(a, command("echo"))
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: running.ID, Status: job.Completed}
	queued := c.startAt(a, spec)
	here := c.startAt(b, command("echo"))
	if err := a.Send(c.ctx, running.ID, []byte("before\n"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stop(c.ctx, here.ID, "ana", time.Second); err != nil {
		t.Fatal(err)
	}
	q, err := c.op.Ask(c.ctx, "main", running.ID, decision.Asking{Prompt: "Go on?"})
	if err != nil {
		t.Fatal(err)
	}
	c.lose(b)
	c.keep(b, b)
	for id, want := range map[string]string{running.ID: "queued started decision_requested decision_withdrawn orphaned", queued.ID: "queued orphaned"} {
		j, err := b.Get(c.ctx, id)
		if err != nil || j.Status != job.Orphaned || j.Pending != 0 || !strings.Contains(j.Failure, "on alpha was lost") {
			t.Errorf("%+v, %v", j, err)
		}
		if got := types(c.events(id)); got != want {
			t.Errorf("events: %s, want %s", got, want)
		}
	}
	if _, err := c.op.Resolve(c.ctx, running.ID, q.ID, decision.Answering{Choice: "approve", By: "ana"}); !errors.Is(err, decision.ErrWithdrawn) {
		t.Errorf("its question: %v", err)
	}
	c.keep(a)
	if err := a.Pass(c.ctx); err != nil {
		t.Fatal(err)
	}
	a.Wait4Runners() // its runner has ended, and the command with it
	if err := a.Pass(c.ctx); err != nil {
		t.Fatal(err)
	}
	if j, err := a.Get(c.ctx, running.ID); err != nil || j.Status != job.Orphaned {
		t.Errorf("%+v, %v", j, err)
	}
	if got := types(c.events(running.ID)); !strings.HasSuffix(got, "orphaned") {
		t.Errorf("events: %s", got)
	}
}

// What a lost machine leaves in the store is cleaned up by another one; what is of one that
// is there is its own to clean.
func TestCleanAfterALostMachine(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a, b := c.machine("alpha"), c.machine("beta")
	c.keep(a, b)
	j := c.startAt(a, shell("exit 0"))
	if _, err := a.Wait(c.ctx, job.Waiting{JobID: j.ID, Types: []string{"completed"}}); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Second)
	for _, want := range []int{0, 1, 0} {
		gone, err := b.Clean(c.ctx, job.Cleaning{By: "ana"})
		if err != nil || len(gone) != want {
			t.Errorf("%v, %v, want %d", gone, err, want)
		}
		c.lose(b)
	}
	if _, err := b.Get(c.ctx, j.ID); !errors.Is(err, job.ErrNotFound) {
		t.Error(err)
	}
	if js, err := a.List(c.ctx, job.Query{}); err != nil || len(js) != 0 {
		t.Errorf("%+v, %v", js, err)
	}
}

// Whoever was cut off from the store orphans nobody who was cut off with him.
func TestStoreWasAway(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a, b := c.machine("alpha"), c.machine("beta")
	c.keep(a, b)
	first, second := c.startAt(a, command("echo")), c.startAt(b, command("echo"))
	c.advance(time.Hour)
	c.keep(b, a, b)
	for _, j := range []job.Job{first, second} {
		if j, err := b.Get(c.ctx, j.ID); err != nil || j.Status != job.Running {
			t.Errorf("%+v, %v", j, err)
		}
	}
}

// A job that is started where the lease had ended is not orphaned: the home is held anew
// in the same transaction.
func TestStartAfterTheLease(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a, b := c.machine("alpha"), c.machine("beta")
	c.keep(a, b)
	c.lose(b)
	j := c.startAt(a, command("echo"))
	c.keep(b)
	if j, err := b.Get(c.ctx, j.ID); err != nil || j.Status != job.Running {
		t.Errorf("%+v, %v", j, err)
	}
}

// A home that comes back while it is judged: either its jobs are orphaned before it is
// there again, or not at all.
func TestComesBackWhileJudged(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a, b := c.machine("alpha"), c.machine("beta")
	never := c.start(shell("read x")) // of a home that nobody judges
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: never.ID, Status: job.Completed}
	orphaned := 0
	for range 200 / raceFactor {
		c.keep(a, b)
		j := c.startAt(a, spec)
		c.lose(b)
		var errs [2]error
		start := make(chan struct{})
		var both sync.WaitGroup
		for i, do := range []func(context.Context) error{a.Hold, b.KeepOnce} {
			both.Go(func() {
				<-start
				errs[i] = do(c.ctx)
			})
		}
		close(start)
		both.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		c.keep(b)
		now, err := b.Get(c.ctx, j.ID)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case now.Status == job.Queued:
			if _, err := b.Stop(c.ctx, j.ID, "ana", 0); err != nil {
				t.Fatal(err)
			}
		case now.Status != job.Orphaned || now.EndedAt.After(c.homeOf(a).Since):
			t.Fatalf("%+v; the home: %+v", now, c.homeOf(a))
		default:
			orphaned++
		}
	}
	t.Logf("%d orphaned", orphaned)
}

// Several judges orphan a job once.
func TestManyJudges(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a := c.machine("alpha")
	judges := []*machine{c.machine("b"), c.machine("c"), c.machine("d")}
	never := c.start(shell("read x"))
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: never.ID, Status: job.Completed}
	c.keep(a)
	c.keep(judges...)
	var ids []string
	for range 10 {
		ids = append(ids, c.startAt(a, spec).ID)
	}
	c.lose(judges...)
	start := make(chan struct{})
	var all sync.WaitGroup
	for _, m := range judges {
		all.Go(func() {
			<-start
			if err := m.KeepOnce(c.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	for _, id := range ids {
		if got := types(c.events(id)); got != "queued orphaned" {
			t.Errorf("events: %s", got)
		}
	}
}

// Jobs of before homes had ids go over to the home of their folder, unless another machine
// is on the store: that could have a folder of the same name.
func TestJobsOfAFolder(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"alone": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTown(t)
			old := c.run(shell("echo out"))
			if shared {
				c.keep(c.machine("beta"))
			}
			m := c.machine("alpha", func(conf *job.Config) { conf.Dir = c.dir })
			c.keep(m)
			tail, err := m.Tail(c.ctx, old.ID, job.Tailing{})
			if shared != errors.Is(err, job.ErrElsewhere) || !shared && string(tail.Data) != "out\n" {
				t.Errorf("%q, %v", tail.Data, err)
			}
		})
	}
}

// A loop registers its home before it launches anything, and gives it up when it ends. A
// home that was lost for long is forgotten.
func TestLoopKeepsItsHome(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	b := c.machine("beta")
	ended := make(chan struct{})
	a := c.machine("alpha", func(conf *job.Config) { conf.URL, conf.Version = "https://alpha:7420", "v9" })
	ctx, stop := context.WithCancel(c.ctx)
	go func() {
		defer close(ended)
		if err := a.Loop(ctx); err != nil {
			t.Error(err)
		}
	}()
	j := c.startAt(a, shell("exit 0"))
	if got, err := b.Wait(c.ctx, job.Waiting{JobID: j.ID, Types: []string{"completed"}}); err != nil || got.Result != job.GotEvent {
		t.Fatalf("%+v, %v", got, err)
	}
	h := c.homeOf(a)
	if h.Host != "alpha" || h.URL != "https://alpha:7420" || h.Version != "v9" || h.Dir != a.dir || h.Process == "" {
		t.Errorf("%+v", h)
	}
	stop()
	<-ended
	if h := c.homeOf(a); h.URL != "" || h.LeaseUntil.Sub(h.Since) >= lease {
		t.Errorf("it was not given up: %+v", h)
	}
	c.advance(31 * 24 * time.Hour)
	c.keep(b)
	c.lose(b)
	c.keep(b)
	hs, _, err := b.Homes(c.ctx)
	if err != nil || len(hs) != 1 || hs[0].ID != b.id {
		t.Errorf("%+v, %v", hs, err)
	}
}

// far is a process of another boot.
const far = "v1:another-boot:1:7:9"

// takeOver writes the machine's home as one that another machine of the same name holds.
func (c *town) takeOver(m *machine) {
	c.Helper()
	err := txn.Update(c.ctx, c.st, func(tx job.Tx) error {
		h, err := tx.Home(m.id)
		if err != nil {
			return err
		}
		theirs := h
		theirs.Process, theirs.LeaseUntil = far, tx.Now().Add(lease)
		return tx.PutHome(h, theirs)
	})
	if err != nil {
		c.Fatal(err)
	}
}

// From a home that a clone of the machine holds, nothing is started, until its lease ends.
func TestCopiedHome(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a := c.machine("alpha")
	c.keep(a)
	c.takeOver(a)
	var who job.Holder
	for what, do := range map[string]func() error{
		"held":    func() error { return a.Hold(c.ctx) },
		"started": func() error { _, err := a.Start(c.ctx, job.Starting{Spec: shell("true")}); return err },
	} {
		err := do()
		if !errors.Is(err, job.ErrHomeTaken) || json.Unmarshal(fault.From(err).Details, &who) != nil || who.Process != far || who.Until == "" {
			t.Errorf("%s: %v, %+v", what, err, who)
		}
	}
	c.advance(lease + time.Second)
	if j := c.startAt(a, shell("true")); j.Status == job.Queued {
		t.Errorf("%+v", j)
	}
}

// A launch of which nothing can be seen here is left alone for as long as a home that is
// lost; then it is orphaned, and never made again.
func TestUnseenLaunch(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a := c.machine("alpha")
	c.keep(a)
	never := c.start(shell("read x"))
	spec := shell("true")
	spec.Trigger = job.Trigger{JobID: never.ID, Status: job.Completed}
	j := c.startAt(a, spec)
	err := txn.Update(c.ctx, c.st, func(tx job.Tx) error {
		now, err := tx.Job(j.ID)
		if err != nil {
			return err
		}
		ch, err := now.Step(job.Claim{Token: "t", Launcher: far, Epoch: tx.Epoch()}, tx.Now())
		if err != nil {
			return err
		}
		return tx.PutJob(now, ch)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []job.Status{job.Launching, job.Orphaned} {
		if err := a.Pass(c.ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Get(c.ctx, j.ID); err != nil || got.Status != want || want == job.Orphaned && !strings.Contains(got.Failure, "not known") {
			t.Errorf("%+v, %v, want %s", got, err, want)
		}
		c.advance(job.DefaultOrphanAfter + time.Second)
	}
	if got := types(c.events(j.ID)); got != "queued orphaned" {
		t.Errorf("events: %s", got)
	}
}

// endless is a store in which there is always more of a cleaned job to delete.
type endless struct {
	txn.Store
	deletes atomic.Int64
}

type endlessTx struct {
	job.Tx
	of *endless
}

func (s *endless) Update(ctx context.Context, fn func(txn.Tx) error) error {
	return s.Store.Update(ctx, func(tx txn.Tx) error { return fn(endlessTx{tx.(job.Tx), s}) })
}

func (tx endlessTx) DeleteJob(_ string, limit int) (int, error) {
	tx.of.deletes.Add(1)
	return limit, nil
}

// However long it takes to clean up after a lost home, one's own is renewed meanwhile.
func TestRenewedWhileCleaning(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	a := c.machine("alpha")
	c.keep(a)
	j := c.startAt(a, shell("exit 0"))
	if _, err := a.Wait(c.ctx, job.Waiting{JobID: j.ID, Types: []string{"completed"}}); err != nil {
		t.Fatal(err)
	}
	err := txn.Update(c.ctx, c.st, func(tx job.Tx) error {
		now, err := tx.Job(j.ID)
		if err != nil {
			return err
		}
		return tx.CleanJob(now, "ana")
	})
	if err != nil {
		t.Fatal(err)
	}
	c.advance(2 * time.Minute)
	st := &endless{Store: c.st}
	b := c.machine("beta", func(conf *job.Config) { conf.Store, conf.HomeLease = st, time.Second })
	c.loop(b.Supervisor)
	for st.deletes.Load() == 0 {
		if c.ctx.Err() != nil {
			t.Fatal("nothing is cleaned up")
		}
		time.Sleep(time.Millisecond)
	}
	began := c.homeOf(b)
	for c.homeOf(b).LeaseUntil.Sub(began.LeaseUntil) < time.Second {
		if c.ctx.Err() != nil {
			t.Fatal("the home is not renewed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := st.deletes.Load(); n < 2 {
		t.Errorf("%d deletes", n)
	}
}
