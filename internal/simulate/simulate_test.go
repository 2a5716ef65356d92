package simulate

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
)

// One daemon, one call, one yes: the harness itself works.
func TestOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	r, err := w.as("bot", 0).Call(t.Context(), pay, []byte(`{"n":1,"ask":true}`), "")
	if err != nil || r.Status != call.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := w.as("ana", 0).Decide(t.Context(), r.ApprovalID, httpapi.Deciding{Approved: true, Digest: r.Digest}); err != nil {
		t.Fatal(err)
	}
	o, err := w.as("bot", 0).GetCall(t.Context(), r.CallID, patience)
	if err != nil || o.Status != call.Succeeded {
		t.Fatalf("%+v %v\n%s", o, err, w.members[0].log.last(2000))
	}
	b, err := os.ReadFile(w.seen)
	if err != nil || strings.TrimSpace(string(b)) != r.CallID+" 1 pay" {
		t.Fatalf("%q %v", b, err)
	}
}

// Three daemons, while processes are killed and networks fail. For long, it is one such
// world after the other, each with the next seed, in which the server goes down as well.
func TestSimulate(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	p := plan{seed: rand.Uint64() >> 16, daemons: 3, clients: 8, lasts: 10 * time.Second}
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p.seed = seed
	}
	text := os.Getenv(lastsVariable)
	if text == "" {
		simulate(t, p)
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	p.lasts, p.restarts = 20*time.Second, true
	for end := time.Now().Add(d); time.Now().Before(end); p.seed++ {
		t.Run(strconv.FormatUint(p.seed, 10), func(t *testing.T) { simulate(t, p) })
	}
}
