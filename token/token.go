package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Scope is what the holder of a token may do.
type Scope string

// The scopes (design §7).
const (
	Agent    Scope = "agent"
	Reviewer Scope = "reviewer"
	Operator Scope = "operator"
	Admin    Scope = "admin"
)

// Scopes lists them.
func Scopes() []Scope { return []Scope{Agent, Reviewer, Operator, Admin} }

// Valid reports whether s is one of them.
func (s Scope) Valid() bool { return s == Agent || s == Reviewer || s == Operator || s == Admin }

// Errors of this package.
var (
	ErrNotFound = fault.Sentinel(fault.NotFound, "not_found", "There is no such token.")
	ErrUsage    = fault.Sentinel(fault.Invalid, "usage", "This cannot be asked for in this way.")
	// ErrUnauthenticated: nobody was proved. It never says why.
	ErrUnauthenticated = fault.Sentinel(fault.Unauthenticated, "unauthenticated", "This needs a valid token.")
)

// MaxName bounds names and principals, in characters.
const MaxName = 200

// Token is one of them, as it is stored: without its secret.
type Token struct {
	ID        string
	Space     string
	Scope     Scope
	Name      string
	Principal string // who its holder is; several tokens may prove the same
	JobID     string // the only job that it is good for; empty: it is nobody's
	Hash      []byte // SHA-256 of the secret
	CreatedAt time.Time
	RevokedAt time.Time // zero: it is good
}

// Tx is what tokens need of a transaction.
type Tx interface {
	txn.Tx
	InsertToken(t Token) error
	// Token reads one; [ErrNotFound].
	Token(id string) (Token, error)
	// Tokens lists, newest first.
	Tokens(q Query) ([]Token, error)
	// RevokeToken ends a token that is good, and its sign-ins; false: it was not.
	RevokeToken(id string, at time.Time) (bool, error)
	// Epoch is the store's present life.
	Epoch() int64
	// SignIn reads one; [ErrNotFound], also for one that is over, or whose token is not good.
	SignIn(key string) (SignIn, error)
	// PutSignIn writes one, in place of the one with the same key.
	PutSignIn(s SignIn) error
	// RenewSignIn writes Data and ExpiresAt of the one with that key, token and epoch, and
	// reports whether there was one.
	RenewSignIn(s SignIn) (bool, error)
	// DropSignIn deletes one; none is fine.
	DropSignIn(key string) error
	// DropSignIns deletes up to limit that have expired by now or are of an earlier life of
	// the store, and says how many. limit is 1 to 1,000; 0 means 100.
	DropSignIns(now time.Time, limit int) (int, error)
}

// Query selects tokens, newest first.
type Query struct {
	Space     string
	Principal string // empty: all
	JobID     string // empty: all
	Good      bool   // only those that are not revoked
	After     string // id of the last one seen
	Limit     int    // 1 to 500; 0 means 50
	Prefix    string // of the id
}

// New is what a token is made of.
type New struct {
	Space     string
	Scope     Scope
	Name      string
	Principal string // empty: the name
	JobID     string
}

func (n New) checked() (New, error) {
	if n.Principal == "" {
		n.Principal = n.Name
	}
	if !n.Scope.Valid() {
		return n, ErrUsage.Say("%q is no scope.", string(n.Scope)).Hint("Write agent, reviewer, operator or admin.")
	}
	if blank(n.Name) {
		return n, ErrUsage.Say("A token needs a name.").Hint("Name who or what will hold it.")
	}
	if blank(n.Principal) {
		return n, ErrUsage.Say("The principal is blank.").Hint("Name who the token proves its holder to be, or leave it out: then it is the name.")
	}
	if n.JobID != "" && n.Scope != Agent {
		return n, ErrUsage.Say("A job's token has scope agent.")
	}
	for _, s := range []struct{ what, text string }{{"name", n.Name}, {"principal", n.Principal}} {
		if !utf8.ValidString(s.text) || strings.ContainsFunc(s.text, unicode.IsControl) || utf8.RuneCountInString(s.text) > MaxName {
			return n, ErrUsage.Say("The %s is not plain text of at most %d characters.", s.what, MaxName)
		}
	}
	return n, nil
}

// blank reports whether there is nothing to see in s.
func blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// Create stores a new token. The secret is told this once.
func Create(ctx context.Context, s txn.Store, n New) (t Token, secret string, err error) {
	if n, err = n.checked(); err != nil {
		return t, "", err
	}
	err = txn.Update(ctx, s, func(tx Tx) (err error) {
		t, secret, err = Issue(tx, n)
		return err
	})
	return t, secret, err
}

// Issue is [Create] inside a transaction.
func Issue(tx Tx, n New) (t Token, secret string, err error) {
	if n, err = n.checked(); err != nil {
		return t, "", err
	}
	t = Token{ID: id.New(id.Token), Space: n.Space, Scope: n.Scope, Name: n.Name, Principal: n.Principal, JobID: n.JobID, CreatedAt: tx.Now()}
	var random [32]byte
	rand.Read(random[:]) // never fails
	secret = secretOf(t.ID, random[:])
	t.Hash = hash(secret)
	return t, secret, tx.InsertToken(t)
}

// A secret names its row, so that it is found without a search by what is secret:
// placet_<id without its prefix>_<43 characters>.
const secretPrefix = "placet_"

func secretOf(tokenID string, random []byte) string {
	return secretPrefix + strings.TrimPrefix(tokenID, id.Token) + "_" + base64.RawURLEncoding.EncodeToString(random)
}

func rowOf(secret string) (tokenID string, ok bool) {
	rest, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok || len(rest) != 36+1+43 || rest[36] != '_' {
		return "", false
	}
	tokenID = id.Token + rest[:36]
	return tokenID, id.Has(id.Token, tokenID)
}

func hash(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

// Find is the good token of that secret, in the space: [ErrUnauthenticated] for
// anything else, whatever is wrong with it.
func Find(ctx context.Context, s txn.Store, space, secret string) (Token, error) {
	tokenID, ok := rowOf(secret)
	if !ok {
		return Token{}, ErrUnauthenticated
	}
	var t Token
	err := txn.View(ctx, s, func(tx Tx) (err error) {
		t, err = tx.Token(tokenID)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return Token{}, ErrUnauthenticated
	}
	if err != nil {
		return Token{}, err
	}
	if subtle.ConstantTimeCompare(t.Hash, hash(secret)) != 1 || !t.RevokedAt.IsZero() || t.Space != space {
		return Token{}, ErrUnauthenticated
	}
	return t, nil
}

// Good is the good token of that id, in the space, for whoever proved it earlier:
// [ErrUnauthenticated] where it is revoked or gone.
func Good(ctx context.Context, s txn.Store, space, tokenID string) (t Token, err error) {
	err = txn.View(ctx, s, func(tx Tx) (err error) {
		t, err = tx.Token(tokenID)
		return err
	})
	if errors.Is(err, ErrNotFound) || err == nil && (!t.RevokedAt.IsZero() || t.Space != space) {
		return Token{}, ErrUnauthenticated
	}
	return t, err
}

// List reads tokens, newest first.
func List(ctx context.Context, s txn.Store, q Query) (ts []Token, err error) {
	err = txn.View(ctx, s, func(tx Tx) (err error) {
		ts, err = tx.Tokens(q)
		return err
	})
	return ts, err
}

// Revoke ends a token of the space; once more is fine. [ErrNotFound].
func Revoke(ctx context.Context, s txn.Store, space, tokenID string) (t Token, err error) {
	err = txn.Update(ctx, s, func(tx Tx) (err error) {
		if t, err = tx.Token(tokenID); err != nil {
			return err
		}
		if t.Space != space {
			return ErrNotFound.Say("There is no token %s.", tokenID)
		}
		if !t.RevokedAt.IsZero() {
			return nil
		}
		t.RevokedAt = tx.Now()
		won, err := tx.RevokeToken(tokenID, t.RevokedAt)
		if err == nil && !won { // another was first, and its time stands
			t, err = tx.Token(tokenID)
		}
		return err
	})
	return t, err
}

// RevokeJobs ends the tokens of a job, in the transaction that ends the job or launches
// it anew.
func RevokeJobs(tx Tx, space, jobID string) error {
	const some = 500
	for {
		ts, err := tx.Tokens(Query{Space: space, JobID: jobID, Good: true, Limit: some})
		if err != nil {
			return err
		}
		for _, t := range ts {
			won, err := tx.RevokeToken(t.ID, tx.Now())
			if err == nil && !won {
				err = fault.New(fault.Conflict, "Token %s was revoked in the meantime; nothing was written.", t.ID)
			}
			if err != nil {
				return err
			}
		}
		if len(ts) < some {
			return nil
		}
	}
}

// MayAsk reports whether some good token still lets the principal ask for work: what
// it asked for earlier is carried out only then. A job's token is good for that job
// alone, and proves nothing about other work.
func MayAsk(tx Tx, space, principal string) (bool, error) {
	after := ""
	for {
		ts, err := tx.Tokens(Query{Space: space, Principal: principal, Good: true, After: after, Limit: 500})
		if err != nil || len(ts) == 0 {
			return false, err
		}
		for _, t := range ts {
			if t.JobID == "" && (t.Scope == Agent || t.Scope == Admin) {
				return true, nil
			}
		}
		after = ts[len(ts)-1].ID
	}
}

// Object is a token as every door writes it. Secret is there only in the answer to
// its making.
type Object struct {
	Secret    string `json:"token,omitempty"`
	ID        string `json:"id"`
	Scope     Scope  `json:"scope"`
	Name      string `json:"name"`
	Principal string `json:"principal"`
	JobID     string `json:"job_id,omitempty"`
	CreatedAt string `json:"created_at"`
	RevokedAt string `json:"revoked_at,omitempty"`
}

// Object is the token as every door writes it, without its secret.
func (t Token) Object() Object {
	return Object{
		ID: t.ID, Scope: t.Scope, Name: t.Name, Principal: t.Principal, JobID: t.JobID,
		CreatedAt: txn.Stamp(t.CreatedAt), RevokedAt: txn.Stamp(t.RevokedAt),
	}
}
