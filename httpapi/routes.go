package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

func (s *Server) register() {
	s.registerTools()
	s.registerCalls()
	s.registerApprovals()
	s.registerRuns()
	s.registerJobs()
	s.registerQuestions()
	s.registerEvents()
	s.registerTokens()
	s.registerHealth()
}

// schemaNames are the names of types in the document that say too little by themselves.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[decision.Object]():       "Approval",
	reflect.TypeFor[call.Object]():           "Call",
	reflect.TypeFor[call.AttemptObject]():    "Attempt",
	reflect.TypeFor[event.Object]():          "Event",
	reflect.TypeFor[run.Object]():            "Run",
	reflect.TypeFor[run.StepObject]():        "Step",
	reflect.TypeFor[run.ObservationObject](): "Observation",
	reflect.TypeFor[tool.Object]():           "Tool",
	reflect.TypeFor[token.Object]():          "Token",
}

func schemaName(t reflect.Type, hint string) string {
	if n, ok := schemaNames[t]; ok {
		return n
	}
	return huma.DefaultSchemaNamer(t, hint)
}

func (s *Server) problemResponse() *huma.Response {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	return &huma.Response{Description: "A refusal or failure", Content: map[string]*huma.MediaType{problemType: {Schema: schema}}}
}

// Document is the OpenAPI 3.1 document of a server, as YAML.
func (s *Server) Document() ([]byte, error) { return s.api.OpenAPI().YAML() }

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
	add(s, route{method: http.MethodGet, path: "/v1/whoami", id: "whoami", summary: "What the token proves"},
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
