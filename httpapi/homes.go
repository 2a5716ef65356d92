package httpapi

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/txn"
)

// Home is a place from which jobs are launched, of those that share the store.
type Home struct {
	HomeID     string `json:"home_id"`
	Host       string `json:"host"`
	Folder     string `json:"folder" doc:"of its jobs, on that host"`
	URL        string `json:"url,omitempty" doc:"at which other daemons reach the one there"`
	Version    string `json:"version,omitempty"`
	Since      string `json:"since" doc:"it has been held without a gap"`
	LeaseUntil string `json:"lease_until" doc:"it is there until then, if it is not renewed"`
	Present    bool   `json:"present"`
	Here       bool   `json:"here" doc:"it is that of the daemon that was asked"`
}

// HomeObject is a home as every door writes it, at a time of the store's clock.
func HomeObject(h job.Home, now time.Time) Home {
	return Home{
		HomeID: h.ID, Host: h.Host, Folder: h.Dir, URL: h.URL, Version: h.Version,
		Since: txn.Stamp(h.Since), LeaseUntil: txn.Stamp(h.LeaseUntil), Present: h.Present(now),
	}
}

// Homes is the list of them.
type Homes struct {
	Homes []Home `json:"homes"`
}

func (s *Server) registerHomes() {
	add(s, route{method: http.MethodGet, path: "/v1/homes", id: "listHomes", scopes: readers, summary: "The daemons' homes that share the store"},
		func(ctx context.Context, _ caller, _ *none) (*body[Homes], error) {
			if s.c.Jobs == nil {
				return nil, errNoJobs
			}
			hs, now, err := s.c.Jobs.Homes(ctx)
			list := Homes{Homes: objects(hs, func(h job.Home) Home {
				o := HomeObject(h, now)
				o.Here = s.c.Jobs.Mine(job.Job{Home: h.ID})
				return o
			})}
			return answer(list, err)
		})
}

// jobObjects are jobs as the caller sees them, with where those are that are not here.
func (s *Server) jobObjects(ctx context.Context, c caller, js ...job.Job) ([]Job, error) {
	os := objects(js, c.jobObject)
	hosts := map[string]string{}
	for i, j := range js {
		if s.c.Jobs.Mine(j) || j.ID == "" {
			continue
		}
		host, known := hosts[j.Home]
		if !known {
			h, _, err := s.c.Jobs.HomeOf(ctx, j)
			if err != nil {
				return nil, err
			}
			host = h.Host
			hosts[j.Home] = host
		}
		os[i].Host, os[i].HomeID = host, j.Home
	}
	return os, nil
}

func (s *Server) jobAnswer(ctx context.Context, c caller, j job.Job, err error) (*body[Job], error) {
	if err != nil {
		return nil, err
	}
	os, err := s.jobObjects(ctx, c, j)
	if err != nil {
		return nil, err
	}
	return answer(os[0], nil)
}

// passedHeader names the home whose daemon passed a request on. It is passed on once.
const passedHeader = "Placet-Passed-On"

// passing is what a request brought along that may have to be passed on.
type passing struct {
	secret string // of the caller's own token
	before bool   // it was passed on already
}

type passingKey struct{}

// passingOf is asked once it is known who sent the request.
func passingOf(r *http.Request) passing {
	_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return passing{secret: secret, before: r.Header.Get(passedHeader) != ""}
}

// farDial bounds how long it takes to reach another daemon, and farAnswer how long it may
// take for its whole answer: the longest that it waits itself is for a job's runner.
const (
	farDial   = 5 * time.Second
	farAnswer = 30 * time.Second
)

// errSilent: the far daemon did not answer in time.
var errSilent = errors.New("no answer in time")

func farHTTP() *http.Client {
	return plainHTTP((&net.Dialer{Timeout: farDial}).DialContext)
}

// ErrHomeUnreachable: the daemon that has the job's files did not answer, or as none of
// this store does. Whether it heard is not known.
var ErrHomeUnreachable = fault.Sentinel(fault.Unknown, "home_unreachable", "The daemon that looks after the job does not answer.")

// passOn asks the daemon of the job's home for what needs its files, with the caller's own
// token: that daemon finds out anew who asks, and grants no more than to whoever asks it
// directly. Where there is nobody to ask, elsewhere stands, which says where the job is.
func passOn[O any](ctx context.Context, s *Server, elsewhere error, method, path string, in any) (*body[O], error) {
	var at job.Elsewhere
	p, ok := ctx.Value(passingKey{}).(passing)
	if !ok || p.before || stdjson.Unmarshal(fault.From(elsewhere).Details, &at) != nil || !at.Present || at.URL == "" {
		return nil, elsewhere
	}
	var out O
	far := &Client{URL: at.URL, Token: p.secret, HTTP: s.far}
	within, stop := context.WithTimeoutCause(ctx, s.patience.far, errUnreachable.Because(errSilent))
	defer stop()
	err := far.Do(within, method, path, in, &out, passedHeader, "yes")
	if err != nil && ctx.Err() == nil && isNoAnswer(err) {
		if gone := s.stillGood(ctx); gone != nil {
			return nil, gone // it is the token's fault
		}
		err = ErrHomeUnreachable.With(at).Because(err).
			Say("Job %s belongs to %s, and the daemon there gave no answer at %s: %s", at.JobID, at.Host, at.URL, fault.From(err).Message).
			Hint("Ask on that machine, or correct what its placet serve was given as --advertise.")
	}
	return answer(out, err)
}

// passOnTail asks for a piece of output. Who follows waits without end for a job that
// prints nothing, but not for a daemon that says nothing: every so often it is asked for
// what there is, and that it answers at once.
func (s *Server) passOnTail(ctx context.Context, elsewhere error, id string, q job.Tailing) (*body[Tail], error) {
	now := q
	now.Follow = false
	for {
		out, err := passOn[Tail](ctx, s, elsewhere, http.MethodGet, tailPath(id, q), nil)
		if !q.Follow || !errors.Is(err, errSilent) {
			return out, err
		}
		out, err = passOn[Tail](ctx, s, elsewhere, http.MethodGet, tailPath(id, now), nil)
		if err != nil || len(out.Body.Data) > 0 || out.Body.End {
			return out, err
		}
	}
}

// isNoAnswer reports whether a far daemon said nothing about the job: it did not answer, or
// is another store's, or goes by another name.
func isNoAnswer(err error) bool {
	for _, no := range []error{errUnreachable, token.ErrUnauthenticated, ErrHost, ErrNoRoute, ErrMethod, ErrCrossSite} {
		if errors.Is(err, no) {
			return true
		}
	}
	return fault.From(err).Code == fault.Internal
}
