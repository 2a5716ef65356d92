package webhook

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/placet-dev/placet/delivery"
)

// verifier is the public library's, with a secret as a receiver has it.
func verifier(t *testing.T, secret []byte) *standardwebhooks.Webhook {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(delivery.FormatSecret(secret))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// headers of an attempt at that time.
func headers(t *testing.T, m delivery.Message) http.Header {
	t.Helper()
	e, err := readTarget(m.Target)
	if err != nil {
		t.Fatal(err)
	}
	req, err := request(t.Context(), m, e)
	if err != nil {
		t.Fatal(err)
	}
	return req.Header
}

func TestSignedAsTheLibrarySigns(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{nil, body, bytes.Repeat([]byte{0xff, 0, '.'}, 1000)} {
		want, err := verifier(t, secret).Sign("dlv_1", at, b)
		if got := Sign([][]byte{secret}, "dlv_1", at.Add(900*time.Millisecond), b); err != nil || got != want {
			t.Errorf("signed %s, the library signs %s, %v", got, want, err)
		}
	}
}

// Case 148: bytes, id, time and secret are all bound.
func TestCase148WhatIsSignedIsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := message("https://hooks.example/")
		m.At = time.Now()
		h := headers(t, m)
		v := verifier(t, secret)
		if err := v.Verify(body, h); err != nil {
			t.Fatal(err)
		}
		for i := range body {
			flipped := bytes.Clone(body)
			flipped[i] ^= 1
			if v.Verify(flipped, h) == nil {
				t.Errorf("a flip in byte %d was not seen", i)
			}
		}
		for name, value := range map[string]string{headerID: "dlv_2", headerTimestamp: timestamp(m.At.Add(time.Second))} {
			other := h.Clone()
			other.Set(name, value)
			if v.Verify(body, other) == nil {
				t.Errorf("another %s was not seen", name)
			}
		}
		if verifier(t, previous).Verify(body, h) == nil {
			t.Error("another secret verifies")
		}
		time.Sleep(5*time.Minute + time.Second)
		if v.Verify(body, h) == nil {
			t.Error("a message of five minutes ago verifies")
		}
	})
}

func TestBothSecretsSignWhileRotating(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := message("https://hooks.example/")
		m.Target.OldSecret, m.Target.OldUntil = previous, time.Now().Add(delivery.RotationOverlap)
		for _, tt := range []struct {
			after time.Duration
			old   bool
		}{{0, true}, {delivery.RotationOverlap - time.Second, true}, {time.Second, false}, {time.Hour, false}} {
			time.Sleep(tt.after)
			m.At = time.Now()
			h := headers(t, m)
			if err := verifier(t, secret).Verify(body, h); err != nil {
				t.Errorf("at %s the new secret: %v", m.At, err)
			}
			if err := verifier(t, previous).Verify(body, h); (err == nil) != tt.old {
				t.Errorf("at %s the old secret: %v, want %t", m.At, err, tt.old)
			}
		}
	})
}

// Case 142: each attempt has a time and a signature of its own over the same bytes.
func TestCase142EachAttemptIsSignedAnew(t *testing.T) {
	t.Parallel()
	v := verifier(t, secret)
	var times, ids []string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		times, ids = append(times, r.Header.Get(headerTimestamp)), append(ids, r.Header.Get(headerID))
		if err := v.VerifyIgnoringTimestamp(got, r.Header); err != nil {
			t.Error(err)
		}
		if len(times) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	c := open(t, Options{})
	var results []string
	for i := range 3 {
		m := message(srv.URL)
		m.Attempt, m.At = int64(i+1), at.Add(time.Duration(i)*15*time.Minute)
		results = append(results, string(c.Send(t.Context(), m).Result))
	}
	if got := strings.Join(results, " "); got != "failed failed delivered" {
		t.Error(got)
	}
	if times[0] != timestamp(at) || times[1] != timestamp(at.Add(15*time.Minute)) || times[2] != timestamp(at.Add(30*time.Minute)) {
		t.Errorf("times %v", times)
	}
	if ids[0] != "dlv_1" || ids[1] != "dlv_1" || ids[2] != "dlv_1" {
		t.Errorf("ids %v", ids)
	}
}
