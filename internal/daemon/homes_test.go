package daemon

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/place"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/txn"
)

// A home's id is made once, and kept: a daemon that starts again goes on with its jobs.
func TestHomeID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, err := HomeOf(place.File(w.db))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.FindID(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before there is one: %v", err)
	}
	ids := make([]string, 8)
	ended := make(chan struct{})
	for i := range ids {
		go func() {
			ids[i], _ = h.ID()
			ended <- struct{}{}
		}()
	}
	for range ids {
		<-ended
	}
	for _, s := range ids {
		if s != ids[0] || !id.Has(id.Home, s) {
			t.Fatalf("ids of one home: %v", ids)
		}
	}
	if fi, err := os.Stat(h.idFile()); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if err := os.WriteFile(h.idFile(), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := h.ID(); err == nil {
		t.Errorf("what is no id is taken for one: %q", s)
	}
}

// A daemon tells others where it is reached, goes by that name itself, and gives its home
// up when it ends.
func TestAdvertise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, address := range []string{"alpha:7420", "ftp://alpha", "https://alpha/placet", "https://ana@alpha", "https://", "https://alpha?x=1"} {
		if _, err := w.start(func(c *Config) { c.Advertise = address }); !errors.Is(err, call.ErrUsage) {
			t.Errorf("%s: %v", address, err)
		}
	}
	s, err := w.start(func(c *Config) { c.Advertise, c.Version = "https://alpha.internal:7420", "v9" })
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(s.at.Warnings, " "); strings.Contains(said, "unencrypted") {
		t.Errorf("it warns of %q", said)
	}
	j, err := s.home.StartJob(t.Context(), httpapi.Starting{Command: httpapi.Command("true")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.home.WaitForJob(t.Context(), j.JobID, httpapi.Waiting{Types: []string{"completed"}}); err != nil || got.Result != job.GotEvent {
		t.Fatalf("%+v, %v", got, err)
	}
	l, err := s.home.Homes(t.Context())
	if err != nil || len(l.Homes) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if h := l.Homes[0]; !h.Here || !h.Present || h.URL != "https://alpha.internal:7420" || h.Version != "v9" || h.Host == "" {
		t.Errorf("%+v", h)
	}
	s.stop()
	again, err := w.start(func(c *Config) { c.Advertise = "http://alpha.internal:7420" })
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(again.at.Warnings, " "); !strings.Contains(said, "send tokens to http://alpha.internal:7420 unencrypted") {
		t.Errorf("it warns of %q", said)
	}
	if got, err := again.home.GetJob(t.Context(), j.JobID); err != nil || got.HomeID != "" {
		t.Errorf("its job is another home's: %+v, %v", got, err)
	}
}

// take writes the home as one that is held from another boot: by this machine before it was
// started anew, or by a clone of it.
func (w *world) take(st *store.Store, lease time.Duration) error {
	h, err := HomeOf(place.File(w.db))
	if err != nil {
		return err
	}
	name, err := h.ID()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	return txn.Update(w.t.Context(), st, func(tx store.Tx) error {
		was, err := tx.Home(name)
		if err != nil {
			was = job.Home{}
		}
		now := tx.Now()
		return tx.PutHome(was, job.Home{
			ID: name, Host: host, Dir: h.JobsDir(), Process: "v1:another-boot:1:7:9", Since: now, LeaseUntil: now.Add(lease), Epoch: tx.Epoch(),
		})
	})
}

// A daemon waits for the end of the lease that it held itself before a crash of the machine.
func TestStartedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.take(w.open(), holdAgain/2); err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	if l, err := s.home.Homes(t.Context()); err != nil || len(l.Homes) != 1 || !l.Homes[0].Present || w.log.count("the home is taken") != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

// A home whose lease is renewed from elsewhere is a copy, and refused.
func TestClonedHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.open()
	if err := w.take(st, time.Hour); err != nil {
		t.Fatal(err)
	}
	renewed := make(chan error, 1)
	go func() {
		for w.log.count("the home is taken") == 0 && t.Context().Err() == nil {
			time.Sleep(often)
		}
		renewed <- w.take(st, time.Hour)
	}()
	_, err := w.start()
	if e := <-renewed; e != nil || !errors.Is(err, job.ErrHomeTaken) {
		t.Errorf("%v; renewed: %v", err, e)
	}
}
