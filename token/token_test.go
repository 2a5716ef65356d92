package token_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "placet.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func create(t *testing.T, s *store.Store, n token.New) (token.Token, string) {
	t.Helper()
	n.Space = "main"
	k, secret, err := token.Create(t.Context(), s, n)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func mayAsk(t *testing.T, s *store.Store, principal string) (may bool, err error) {
	t.Helper()
	err = txn.View(t.Context(), s, func(tx token.Tx) error {
		may, err = token.MayAsk(tx, "main", principal)
		return err
	})
	return may, err
}

func TestOnlyTheWholeSecretIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	k, secret := create(t, s, token.New{Scope: token.Agent, Name: "bot"})
	got, err := token.Find(t.Context(), s, "main", secret)
	if err != nil || got.ID != k.ID || got.Principal != "bot" || got.Scope != token.Agent {
		t.Fatalf("%+v, %v", got, err)
	}
	if strings.Contains(string(got.Hash), secret) {
		t.Error("the secret is stored")
	}
	other, _ := create(t, s, token.New{Scope: token.Admin, Name: "bot"})
	for what, wrong := range map[string]string{
		"empty": "", "an id": k.ID, "cut": secret[:len(secret)-1], "longer": secret + "A", "upper case": strings.ToUpper(secret),
		"of another row": strings.Replace(secret, strings.TrimPrefix(k.ID, "tok_"), strings.TrimPrefix(other.ID, "tok_"), 1),
		"another":        secret[:len(secret)-4] + "AAAA", "NUL": secret[:20] + "\x00" + secret[21:],
	} {
		if _, err := token.Find(t.Context(), s, "main", wrong); !errors.Is(err, token.ErrUnauthenticated) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := token.Find(t.Context(), s, "elsewhere", secret); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("in another space: %v", err)
	}
}

func TestRevoked(t *testing.T) {
	t.Parallel()
	s := open(t)
	k, secret := create(t, s, token.New{Scope: token.Agent, Name: "bot", Principal: "ana"})
	if may, err := mayAsk(t, s, "ana"); !may || err != nil {
		t.Fatalf("%t, %v", may, err)
	}
	create(t, s, token.New{Scope: token.Reviewer, Name: "ana"}) // may decide, not ask
	for range 2 {
		if got, err := token.Revoke(t.Context(), s, "main", k.ID); err != nil || got.RevokedAt.IsZero() {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if _, err := token.Find(t.Context(), s, "main", secret); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("found: %v", err)
	}
	if may, err := mayAsk(t, s, "ana"); may || err != nil {
		t.Errorf("%t, %v", may, err)
	}
	if _, err := token.Revoke(t.Context(), s, "elsewhere", k.ID); !errors.Is(err, token.ErrNotFound) {
		t.Errorf("of another space: %v", err)
	}
}

// A job's token is good for that job only: that its principal may ask for work it
// does not prove, however long the job runs.
func TestAJobsTokenIsNoRightToAsk(t *testing.T) {
	t.Parallel()
	s := open(t)
	k, _ := create(t, s, token.New{Scope: token.Agent, Name: "bot"})
	create(t, s, token.New{Scope: token.Agent, Name: "job_1", Principal: "bot", JobID: "job_1"})
	if may, err := mayAsk(t, s, "bot"); !may || err != nil {
		t.Fatalf("%t, %v", may, err)
	}
	if _, err := token.Revoke(t.Context(), s, "main", k.ID); err != nil {
		t.Fatal(err)
	}
	if may, err := mayAsk(t, s, "bot"); may || err != nil {
		t.Errorf("by the token of a job: %t, %v", may, err)
	}
}

func TestAJobsTokensEndWithIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, secret := create(t, s, token.New{Scope: token.Agent, Name: "job", JobID: "job_1"})
	_, other := create(t, s, token.New{Scope: token.Agent, Name: "job", JobID: "job_2"})
	err := txn.Update(t.Context(), s, func(tx token.Tx) error { return token.RevokeJobs(tx, "main", "job_1") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := token.Find(t.Context(), s, "main", secret); !errors.Is(err, token.ErrUnauthenticated) {
		t.Errorf("found: %v", err)
	}
	if _, err := token.Find(t.Context(), s, "main", other); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	for what, n := range map[string]token.New{
		"no scope": {Name: "x"}, "another scope": {Scope: "root", Name: "x"}, "no name": {Scope: token.Agent},
		"blank": {Scope: token.Agent, Name: " "}, "control": {Scope: token.Agent, Name: "a\nb"}, "not UTF-8": {Scope: token.Agent, Name: "\xff"},
		"no principal": {Scope: token.Agent, Name: "x", Principal: " \u2003"}, "nothing to see": {Scope: token.Agent, Name: "\u200b"},
		"a principal that is nothing to see": {Scope: token.Agent, Name: "x", Principal: "\u200b\u2060 \u00ad"},
		"long":                               {Scope: token.Agent, Name: strings.Repeat("x", 201)}, "a job's admin": {Scope: token.Admin, Name: "x", JobID: "job_1"},
	} {
		if _, _, err := token.Create(t.Context(), s, n); !errors.Is(err, token.ErrUsage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
