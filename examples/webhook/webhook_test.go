// Package webhook tests the examples: receivers in three languages, to which a channel
// of ours sends.
package webhook

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/channel/webhook"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/source"
)

// receiver is a running example and what it prints.
type receiver struct {
	t      *testing.T
	url    string
	secret []byte
	lines  *bufio.Scanner
	c      *webhook.Channel
}

// start runs a program with a secret of its own.
func start(t *testing.T, program string, args ...string) *receiver {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is not there: this example needs it.", program)
	}
	r := &receiver{t: t, secret: delivery.NewSecret(), c: webhook.New(webhook.Options{})}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+delivery.FormatSecret(r.secret), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	r.lines = bufio.NewScanner(out)
	url, ok := strings.CutPrefix(r.line(), "listening on ")
	if !ok {
		t.Fatalf("it says %q", r.lines.Text())
	}
	r.url = url
	return r
}

func (r *receiver) line() string {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("it says nothing more: %v", r.lines.Err())
	}
	return r.lines.Text()
}

// message is a delivery of now.
func (r *receiver) message(id string) delivery.Message {
	return delivery.Message{
		DeliveryID: id, Attempt: 1, At: time.Now(), Type: "approval.requested",
		Body:   []byte(`{"specversion":"1.0","id":"evt_1","type":"dev.placet.approval.requested","subject":"` + id + `","data":{}}`),
		Target: delivery.Target{Kind: delivery.KindWebhook, URL: r.url, Secret: r.secret},
	}
}

func (r *receiver) send(m delivery.Message, want delivery.Result) {
	r.t.Helper()
	if o := r.c.Send(r.t.Context(), m); o.Result != want {
		r.t.Errorf("%s: %+v, want %s", m.DeliveryID, o, want)
	}
}

func TestReceivers(t *testing.T) {
	t.Parallel()
	if err := source.Depend(); err != nil {
		t.Fatal(err)
	}
	goReceiver := filepath.Join(t.TempDir(), "receiver.exe")
	if out, err := exec.Command("go", "build", "-o", goReceiver, "./go").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for name, command := range map[string][]string{
		"go":     {goReceiver, "127.0.0.1:0"},
		"python": {"python3", "python/receiver.py", "127.0.0.1", "0"},
		"node":   {"node", "node/receiver.mjs", "127.0.0.1", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, command[0], command[1:]...)
			r.takesEachOnce()
			r.takesBothSecrets()
			r.refusesOtherTimes()
			r.refusesForged()
			r.send(r.message("last"), delivery.Arrived)
			if got := r.line(); got != "dev.placet.approval.requested last" { // nothing that was refused is before it
				t.Errorf("it says %q", got)
			}
		})
	}
}

func (r *receiver) takesEachOnce() {
	r.t.Helper()
	m := r.message("first")
	r.send(m, delivery.Arrived)
	m.Attempt, m.At = 2, m.At.Add(time.Second)
	r.send(m, delivery.Arrived)
	if got := r.line(); got != "dev.placet.approval.requested first" {
		r.t.Errorf("it says %q", got)
	}
}

// A receiver knows one secret, the new or the old: both work until the overlap is over.
func (r *receiver) takesBothSecrets() {
	r.t.Helper()
	m := r.message("new secret")
	m.Target.OldSecret, m.Target.OldUntil = delivery.NewSecret(), m.At.Add(time.Hour)
	r.send(m, delivery.Arrived)
	m = r.message("old secret")
	m.Target.Secret, m.Target.OldSecret, m.Target.OldUntil = delivery.NewSecret(), r.secret, m.At.Add(time.Hour)
	r.send(m, delivery.Arrived)
	for _, want := range []string{"new secret", "old secret"} {
		if got := r.line(); got != "dev.placet.approval.requested "+want {
			r.t.Errorf("it says %q", got)
		}
	}
	m = r.message("secret that is over")
	m.Target.Secret, m.Target.OldSecret, m.Target.OldUntil = delivery.NewSecret(), r.secret, m.At
	r.send(m, delivery.Failed)
}

func (r *receiver) refusesOtherTimes() {
	r.t.Helper()
	for _, age := range []time.Duration{6 * time.Minute, -6 * time.Minute, 24 * time.Hour} {
		m := r.message("of another time")
		m.At = m.At.Add(-age)
		r.send(m, delivery.Failed)
	}
	m := r.message("four minutes old")
	m.At = m.At.Add(-4 * time.Minute)
	r.send(m, delivery.Arrived)
	if got := r.line(); got != "dev.placet.approval.requested four minutes old" {
		r.t.Errorf("it says %q", got)
	}
}

// refusesForged sends what our channel never would.
func (r *receiver) refusesForged() {
	r.t.Helper()
	m := r.message("forged")
	signature := webhook.Sign([][]byte{r.secret}, m.DeliveryID, m.At, m.Body)
	mac := strings.TrimPrefix(signature, "v1,")
	now := strconv.FormatInt(m.At.Unix(), 10)
	flipped := bytes.Clone(m.Body)
	flipped[len(flipped)-1] ^= 1
	for name, f := range map[string]struct {
		id, time, signature string
		body                []byte
	}{
		"flipped byte":    {"forged", now, signature, flipped},
		"longer body":     {"forged", now, signature, append(bytes.Clone(m.Body), ' ')},
		"other id":        {"forged2", now, signature, m.Body},
		"other time":      {"forged", strconv.FormatInt(m.At.Unix()-1, 10), signature, m.Body},
		"no id":           {"", now, signature, m.Body},
		"no time":         {"forged", "", signature, m.Body},
		"time in words":   {"forged", "now", signature, m.Body},
		"huge time":       {"forged", "99999999999999999999", signature, m.Body},
		"time with more":  {"forged", now + ".0", signature, m.Body},
		"no signature":    {"forged", now, "", m.Body},
		"empty signature": {"forged", now, "v1,", m.Body},
		"other version":   {"forged", now, "v2," + mac, m.Body},
		"no version":      {"forged", now, mac, m.Body},
		"beginning":       {"forged", now, signature[:20], m.Body},
		"many":            {"forged", now, strings.TrimSpace(strings.Repeat("v1,AAAA ", 500)), m.Body},
		"not ASCII":       {"forged", now, "v1,\xe9\xff", m.Body},
	} {
		req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url, bytes.NewReader(f.body))
		if err != nil {
			r.t.Fatal(err)
		}
		for header, value := range map[string]string{"webhook-id": f.id, "webhook-timestamp": f.time, "webhook-signature": f.signature} {
			if value != "" {
				req.Header.Set(header, value)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Errorf("%s: %v", name, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			r.t.Errorf("%s: HTTP %d", name, resp.StatusCode)
		}
	}
}

// TestGuide: the guide shows the verifiers as they are.
func TestGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for language, file := range map[string]string{"go": "go/verify.go", "python": "python/verify.py", "js": "node/verify.mjs"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "```"+language+"\n"+string(code)+"```\n") {
			t.Errorf("docs/guide/webhooks.md does not show examples/webhook/%s as it is", file)
		}
	}
}
