package httpapi

import (
	"context"
	"net/http"

	"github.com/placet-dev/placet/token"
)

func (s *Server) register() {
	s.registerTools()
	s.registerCalls()
	s.registerApprovals()
	s.registerRuns()
	s.registerJobs()
	s.registerHomes()
	s.registerQuestions()
	s.registerEvents()
	s.registerEventList()
	s.registerWakes()
	s.registerDeliveries()
	s.registerRelay()
	s.registerTokens()
	s.registerHealth()
	s.complete()
}

type raw struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) registerHealth() {
	add(s, route{method: http.MethodGet, path: "/healthz", id: "healthz", summary: "The process answers", open: true},
		func(context.Context, caller, *none) (*body[state], error) { return &body[state]{state{OK: true}}, nil })
	add(s, route{method: http.MethodGet, path: "/readyz", id: "readyz", summary: "The store answers and every loop is at work", open: true},
		func(ctx context.Context, _ caller, _ *none) (*body[state], error) {
			return answer(state{OK: true}, s.ready(ctx))
		})
	add(s, route{method: http.MethodGet, path: "/metrics", id: "metrics", summary: "Figures for Prometheus", scopes: readers},
		func(context.Context, caller, *none) (*raw, error) {
			text, err := s.metrics.text()
			return &raw{metricsType, text}, err
		})
	add(s, route{method: http.MethodGet, path: "/v1/openapi.yaml", id: "openapi", summary: "This document", open: true},
		func(context.Context, caller, *none) (*raw, error) {
			doc, err := s.Document()
			return &raw{"application/yaml", doc}, err
		})
	add(s, route{method: http.MethodGet, path: "/v1/whoami", id: "whoami", summary: "What the token proves", jobs: true},
		func(_ context.Context, c caller, _ *none) (*body[token.Object], error) {
			return &body[token.Object]{c.Object()}, nil
		})
}

type state struct {
	OK bool `json:"ok"`
}

func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Err() != nil {
		return ErrShutdown
	}
	if s.c.Ready != nil {
		return s.c.Ready(ctx)
	}
	_, err := token.List(ctx, s.c.Store, token.Query{Space: s.c.Space, Limit: 1})
	return err
}
