package main

import (
	"context"
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
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

// overHTTP is a world behind a server on loopback.
type overHTTP struct {
	*world
	url           string
	agent, review string // tokens
	admin         string
	close         func()
}

func (b *bench) serve(ctx context.Context, name string) (*overHTTP, error) {
	w, err := openWorld(ctx, b.path(name), nil)
	if err != nil {
		return nil, err
	}
	reg, err := tool.NewRegistry(noop("refund", tool.RemoteMutation))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Config{Store: w.store, Calls: w.exec, Tools: reg, Hosts: []string{l.Addr().String()}})
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	o := &overHTTP{world: w, url: "http://" + l.Addr().String(), close: func() {
		ended, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = api.Shutdown(ended)
		server.Close()
		w.store.Close()
	}}
	for scope, to := range map[token.Scope]*string{token.Agent: &o.agent, token.Reviewer: &o.review, token.Admin: &o.admin} {
		if _, *to, err = token.Create(ctx, w.store, token.New{Space: "main", Scope: scope, Name: string(scope)}); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// decided measures from the sending of a no to its waiting client's answer.
func decided(ctx context.Context, b *bench) error {
	b.title("serve: decide over HTTP → waiting client answered (target: p99 under 10 ms at 16 concurrent)")
	o, err := b.serve(ctx, "serve.db")
	if err != nil {
		return err
	}
	defer o.close()
	const callers, each = 16, 50
	var mu sync.Mutex
	var took []time.Duration
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			agent, ana := httpapi.NewClient(o.url, o.agent), httpapi.NewClient(o.url, o.review)
			for range each {
				d, err := o.decideOnce(ctx, agent, ana)
				if err != nil {
					errs[i] = err
					return
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	slices.Sort(took)
	b.line("%d decisions: p50 %s, p99 %s", len(took), micro(took[len(took)/2]), micro(took[len(took)*99/100]))
	return nil
}

func (o *overHTTP) decideOnce(ctx context.Context, agent, ana *httpapi.Client) (time.Duration, error) {
	p, err := agent.Call(ctx, "refund", []byte(args), "")
	if err != nil {
		return 0, err
	}
	answered := make(chan error, 1)
	go func() {
		c, err := agent.GetCall(ctx, p.CallID, time.Minute)
		if err == nil && c.Status != call.Denied {
			err = fmt.Errorf("the call is %s", c.Status)
		}
		answered <- err
	}()
	began := time.Now()
	if _, err := ana.Decide(ctx, p.ApprovalID, httpapi.Deciding{Digest: p.Digest}); err != nil {
		return 0, err
	}
	err = <-answered
	return time.Since(began), err
}

// httpWaiters measures what a waiting request holds, its client's side included.
func httpWaiters(ctx context.Context, b *bench) error {
	waiters := min(b.parked*2, 4000)
	b.title("waiters: %d long polls over HTTP, server and client in this process (target: server under 32 KB each)", waiters)
	o, err := b.serve(ctx, "waiters.db")
	if err != nil {
		return err
	}
	defer o.close()
	agent := httpapi.NewClient(o.url, o.agent)
	p, err := agent.Call(ctx, "refund", []byte(args), "")
	if err != nil {
		return err
	}
	before := held()
	ended := make(chan error, waiters)
	for range waiters {
		go func() {
			_, err := agent.GetCall(ctx, p.CallID, 10*time.Minute)
			ended <- err
		}()
	}
	if err := o.untilWaiting(ctx, waiters); err != nil {
		return err
	}
	holds := held() - before
	began := time.Now()
	if err := o.op.RejectShown(ctx, p.RunID, p.ApprovalID, p.Digest, "ana", ""); err != nil {
		return err
	}
	for range waiters {
		if err := <-ended; err != nil {
			return err
		}
	}
	b.line("%s each, both sides together; all answered %s after one decision", fmt.Sprintf("%.1f KiB", float64(holds)/1024/float64(waiters)), time.Since(began).Round(time.Millisecond))
	return nil
}

// untilWaiting returns once so many requests wait, by the server's own figure.
func (o *overHTTP) untilWaiting(ctx context.Context, n int) error {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+"/metrics", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+o.admin)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || strings.Contains(string(text), fmt.Sprintf("\nplacet_http_waiters %d\n", n)) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return ctx.Err()
}
