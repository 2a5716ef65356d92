package httpapi

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
)

// Document is the OpenAPI 3.1 document of a server, as YAML.
func (s *Server) Document() ([]byte, error) { return s.document() }

// schemaNames are the names of types in the document that say too little by themselves.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[decision.Object]():         "Approval",
	reflect.TypeFor[call.Object]():             "Call",
	reflect.TypeFor[call.AttemptObject]():      "Attempt",
	reflect.TypeFor[event.Object]():            "Event",
	reflect.TypeFor[run.Object]():              "Run",
	reflect.TypeFor[run.StepObject]():          "Step",
	reflect.TypeFor[run.ObservationObject]():   "Observation",
	reflect.TypeFor[tool.Object]():             "Tool",
	reflect.TypeFor[token.Object]():            "Token",
	reflect.TypeFor[delivery.Object]():         "WakeTarget",
	reflect.TypeFor[delivery.DeliveryObject](): "Delivery",
	reflect.TypeFor[delivery.AttemptObject]():  "DeliveryAttempt",
}

func schemaName(t reflect.Type, hint string) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n, ok := schemaNames[t]; ok {
		return n
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// refusals are the statuses with which an operation may refuse or fail.
var refusals = map[int]string{
	http.StatusBadRequest:            "The request is malformed; detail names the field",
	http.StatusUnauthorized:          "There is no good token",
	http.StatusForbidden:             "The token may not do that, or the request is for a foreign host or from another site",
	http.StatusNotFound:              "There is nothing of that id, or it is somebody else's",
	http.StatusRequestTimeout:        "The body was not there in time",
	http.StatusConflict:              "Decided already, changed, or against what stands",
	http.StatusGone:                  "Expired",
	http.StatusRequestEntityTooLarge: "Too large",
	http.StatusUnsupportedMediaType:  "The body is not application/json",
	http.StatusUnprocessableEntity:   "It does not fit the tool's schema, or is none of the options",
	http.StatusTooManyRequests:       "A limit on a count is reached",
	http.StatusInternalServerError:   "A failure of ours",
	http.StatusBadGateway:            "The daemon that looks after the job does not answer; whether it heard is not known",
	http.StatusServiceUnavailable:    "Not now; nothing was changed, unless reason is commit_unknown",
}

// refusedWith are the statuses of single operations, beyond those of all that are alike.
var refusedWith = map[string][]int{
	"callTool": {404, 410, 422, 429}, "reserveCall": {404, 410, 422, 429}, "confirmCall": {422}, "withdrawCall": {410},
	"decide": {410, 413, 422}, "withdraw": {410},
	"startJob": {404, 429}, "tailJob": {409, 502}, "sendToJob": {502}, "ask": {429}, "resolve": {410, 422}, "withdrawQuestion": {410, 413},
	"events": {404}, "listEvents": {404}, "addWakeTarget": {404, 429}, "addJobWakeTarget": {429}, "enableWakeTarget": {429}, "registerRelay": {404, 429}, "pollRelay": {404, 409}, "ackRelay": {404}, "releaseRelay": {404},
}

// statusesOf are those with which an operation may refuse or fail.
func statusesOf(r *route) []int {
	all := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if !r.open {
		all = append(all, http.StatusUnauthorized)
	}
	if strings.Contains(r.path, "{") {
		all = append(all, http.StatusNotFound)
	}
	if r.method != http.MethodGet {
		all = append(all, http.StatusConflict)
	}
	if r.takes.body {
		all = append(all, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return append(all, refusedWith[r.id]...)
}

func refusalName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// problemsOf are an operation's refusals and failures, as the document has them.
func problemsOf(r *route) map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, status := range statusesOf(r) {
		all[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + refusalName(status)}
	}
	return all
}

// complete writes into the document what no type tells.
func (s *Server) complete() {
	doc := s.api.OpenAPI()
	schemas := doc.Components.Schemas
	problem := schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	doc.Components.Responses = map[string]*huma.Response{}
	for _, status := range slices.Sorted(maps.Keys(refusals)) {
		doc.Components.Responses[refusalName(status)] = &huma.Response{
			Description: refusals[status], Content: map[string]*huma.MediaType{problemType: {Schema: problem}},
		}
	}
	starting := schemas.Map()["Starting"]
	starting.Properties["command"] = commandSchema(starting.Properties["command"].Description)
	schemas.Map()["Limits"] = limitsSchema()
	schemas.Map()["Usage"].Properties["cost"] = &huma.Schema{Type: huma.TypeNumber}
	for _, p := range doc.Paths {
		for _, op := range []*huma.Operation{p.Get, p.Post, p.Delete} {
			if op != nil {
				completeAnswers(op)
			}
		}
	}
}

func completeAnswers(op *huma.Operation) {
	also := func(status int, description string) {
		usual := op.Responses[strconv.Itoa(op.DefaultStatus)]
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: description, Content: usual.Content}
	}
	text := func(mediaType string) {
		op.Responses["200"].Content = map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: huma.TypeString}}}
		op.Responses["200"].Headers = nil
	}
	switch op.OperationID {
	case "callTool":
		also(http.StatusAccepted, "It waits for a person, or a first request with this key is still running")
	case "reserveCall":
		also(http.StatusOK, "It was refused or has ended: nothing was reserved")
		also(http.StatusAccepted, "It waits for a person, or is still running: nothing was reserved")
	case "metrics":
		text("text/plain")
	case "openapi":
		text("application/yaml")
	case "events":
		text("text/event-stream")
	}
}

// commandSchema is a list of texts, or one.
func commandSchema(description string) *huma.Schema {
	least := 1
	list := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, MinItems: &least}
	line := &huma.Schema{Type: huma.TypeString, MinLength: &least}
	s := &huma.Schema{Description: description, OneOf: []*huma.Schema{list, line}}
	for _, one := range []*huma.Schema{list, line, s} {
		one.PrecomputeMessages()
	}
	return s
}

// limitsSchema is that of a run's limits, which write themselves: only those that are on.
func limitsSchema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Description: "those that are on", AdditionalProperties: false, Properties: map[string]*huma.Schema{
		"max_estimated_cost": {Type: huma.TypeNumber},
	}}
	for _, name := range []string{"max_steps", "max_consecutive_tool_failures", "loop_threshold", "max_model_calls", "max_total_tokens"} {
		s.Properties[name] = &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	}
	for _, name := range []string{"max_active_time", "max_elapsed_time", "approval_ttl", "grant_ttl"} {
		s.Properties[name] = &huma.Schema{Type: huma.TypeString, Description: "as in 1h30m"}
	}
	return s
}
