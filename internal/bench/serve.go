package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/httpapi"
)

const (
	decidedAtOnce = 16
	decidedRounds = 60
	decidedIn     = 10 * time.Millisecond
	pollBytes     = 32 << 10
)

// decided measures from the sending of a no to its waiting client's answer. In each
// round sixteen clients wait already, and sixteen people decide at the same moment.
func decided(ctx context.Context, b *bench) error {
	b.title("serve: decide over HTTP → waiting client answered (target: p99 under %s at %d concurrent)", decidedIn, decidedAtOnce)
	s, err := b.serve(ctx, "decided")
	if err != nil {
		return err
	}
	defer s.close()
	agent, ana := httpapi.NewClient(s.url, s.agent), httpapi.NewClient(s.url, s.review)
	var took, alone []time.Duration
	for range min(decidedRounds, b.parked) {
		more, err := s.round(ctx, agent, ana, decidedAtOnce)
		if err != nil {
			return err
		}
		took = append(took, more...)
		if more, err = s.round(ctx, agent, ana, 1); err != nil {
			return err
		}
		alone = append(alone, more...)
	}
	for _, one := range []struct {
		callers int
		took    []time.Duration
	}{{1, alone}, {decidedAtOnce, took}} {
		slices.Sort(one.took)
		n := len(one.took)
		b.line("%2d at once: %d decisions, p50 %s, p99 %s", one.callers, n, micro(one.took[n/2]), micro(one.took[n*99/100]))
	}
	return nil
}

// round parks calls, has a client wait for each, and decides all of them at once.
func (s *server) round(ctx context.Context, agent, ana *httpapi.Client, n int) ([]time.Duration, error) {
	parked := make([]httpapi.Result, n)
	answered := make([]time.Time, n)
	began := make([]time.Time, n)
	errs := make([]error, 2*n)
	var waiting, deciding sync.WaitGroup
	for i := range parked {
		var err error
		if parked[i], err = agent.Call(ctx, "refund", []byte(args), ""); err != nil {
			return nil, err
		}
		waiting.Go(func() {
			c, err := agent.GetCall(ctx, parked[i].CallID, time.Minute)
			if answered[i] = time.Now(); err == nil && c.Status != call.Denied {
				err = fmt.Errorf("the call is %s", c.Status)
			}
			errs[i] = err
		})
	}
	if err := s.untilWaiting(ctx, n); err != nil {
		return nil, err
	}
	gate := make(chan struct{})
	for i, p := range parked {
		deciding.Go(func() {
			<-gate
			began[i] = time.Now()
			_, errs[n+i] = ana.Decide(ctx, p.ApprovalID, httpapi.Deciding{Digest: p.Digest})
		})
	}
	close(gate)
	deciding.Wait()
	waiting.Wait()
	took := make([]time.Duration, n)
	for i := range took {
		took[i] = answered[i].Sub(began[i])
	}
	return took, errors.Join(errs...)
}

// httpWaiters measures what a waiting request costs its server: for a question's
// answer, and for the end of a call.
func httpWaiters(ctx context.Context, b *bench) error {
	waiters := min(b.parked*5, waitersAtOnce)
	b.title("longpolls: %d over HTTP, the server in a process of its own (targets: under %d KiB each, no processor time while nothing happens, all answered within %s of one event)",
		waiters, pollBytes>>10, answeredIn)
	for _, kind := range []struct {
		name string
		make func(*server, context.Context) (*poll, error)
	}{{"question", (*server).question}, {"call", (*server).call}} {
		if err := b.polls(ctx, kind.name, waiters, kind.make); err != nil {
			return err
		}
	}
	return nil
}

// poll is what many requests wait for.
type poll struct {
	request string // its path
	answer  string // what the answer has in it
	end     func() error
	clear   func() error // what it needed
}

// question is one of a job that waits for its input.
func (s *server) question(ctx context.Context) (*poll, error) {
	agent, ana := httpapi.NewClient(s.url, s.agent), httpapi.NewClient(s.url, s.review)
	j, err := agent.StartJob(ctx, httpapi.Starting{Command: json.RawMessage(`["cat"]`)})
	if err != nil {
		return nil, err
	}
	if _, err := agent.WaitForJob(ctx, j.JobID, httpapi.Waiting{Types: []string{"started"}}); err != nil {
		return nil, err
	}
	q, err := agent.Ask(ctx, j.JobID, httpapi.Asking{Prompt: "Go on?"})
	return &poll{
		request: "/v1/decisions/" + q.DecisionID + "/wait?wait=10m&after=" + string(q.Cursor), answer: `"decision_resolved"`,
		end: func() error {
			_, err := ana.Resolve(ctx, j.JobID, q.DecisionID, httpapi.Resolving{Choice: "approve"})
			return err
		},
		clear: func() error {
			_, err := agent.StopJob(ctx, j.JobID, httpapi.Stopping{})
			return err
		},
	}, err
}

// call is one that is parked.
func (s *server) call(ctx context.Context) (*poll, error) {
	p, err := httpapi.NewClient(s.url, s.agent).Call(ctx, "refund", []byte(args), "")
	return &poll{
		request: "/v1/calls/" + p.CallID + "?wait=10m", answer: `"status":"denied"`,
		end: func() error {
			_, err := httpapi.NewClient(s.url, s.review).Decide(ctx, p.ApprovalID, httpapi.Deciding{Digest: p.Digest})
			return err
		},
		clear: func() error { return nil },
	}, err
}

func (b *bench) polls(ctx context.Context, name string, waiters int, what func(*server, context.Context) (*poll, error)) error {
	s, err := b.serve(ctx, "longpolls-"+name)
	if err != nil {
		return err
	}
	defer s.close()
	p, err := what(s, ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.clear() }()
	before, err := s.holds()
	if err != nil {
		return err
	}
	ended := make(chan error, waiters)
	conns, err := s.poll(p, waiters, ended)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	if err := s.untilWaiting(ctx, waiters); err != nil {
		return err
	}
	after, err := s.holds()
	if err != nil {
		return err
	}
	resident := residentOf(s.cmd.Process.Pid)
	busy, err := s.idling(ctx, b.idle())
	if err != nil {
		return err
	}
	all, used, err := s.answerAll(ctx, p, waiters, ended)
	b.line("%8s: %.1f KiB each, %s resident in all; %s of processor time in %s of waiting; all answered %s after one event was asked for, with %s of processor time",
		name, float64(after-before)/1024/float64(waiters), resident, busy, b.idle(), all.Round(time.Millisecond), used)
	return err
}

// answerAll ends what is waited for. It returns how long it took until the last client
// had its answer, and the server's processor time.
func (s *server) answerAll(ctx context.Context, p *poll, waiters int, ended <-chan error) (took, used time.Duration, err error) {
	from, err := s.processor(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := p.end(); err != nil {
		return 0, 0, err
	}
	for range waiters {
		if err := <-ended; err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(began)
	to, err := s.processor(ctx)
	return took, to - from, err
}

// poll sends so many requests that wait for p, on a connection each.
func (s *server) poll(p *poll, n int, ended chan<- error) (conns []net.Conn, err error) {
	address := strings.TrimPrefix(s.url, "http://")
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", p.request, address, s.agent)
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if _, err := io.WriteString(c, request); err != nil {
			return conns, err
		}
		go func() { ended <- answered(c, p.answer) }()
	}
	return conns, nil
}

func answered(c net.Conn, with string) error {
	res, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && !strings.Contains(string(b), with) {
		err = fmt.Errorf("a long poll was answered with %d: %.200s", res.StatusCode, b)
	}
	return err
}

// idling is the server's processor time of a while in which nothing happens.
func (s *server) idling(ctx context.Context, while time.Duration) (time.Duration, error) {
	from, err := s.processor(ctx)
	if err != nil {
		return 0, err
	}
	time.Sleep(while)
	to, err := s.processor(ctx)
	return to - from, err
}

// processor is how much processor time the server has used, to 10 ms.
func (s *server) processor(ctx context.Context) (time.Duration, error) {
	seconds, err := s.metric(ctx, "process_cpu_seconds_total")
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond), err
}

// untilWaiting returns once so many requests wait, by the server's own figure.
func (s *server) untilWaiting(ctx context.Context, n int) error {
	for ctx.Err() == nil {
		got, err := s.metric(ctx, "placet_http_waiters")
		if err != nil || int(got) == n {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return ctx.Err()
}

// metric is one of the server's figures.
func (s *server) metric(ctx context.Context, name string) (value float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.admin.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(text), "\n"+name+" ")
	if !ok {
		return 0, fmt.Errorf("the server tells no %s", name)
	}
	_, err = fmt.Sscan(after, &value)
	return value, err
}
