package mcpserver

import (
	"context"
	"net/http"
	"net/url"

	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/token"
)

// Door carries out operations of the HTTP API with the rights of one caller. An answer
// is returned as it comes, whatever its status; an error says that there was none.
type Door interface {
	Send(ctx context.Context, method, path string, query url.Values, header http.Header, body []byte) (status int, answer []byte, err error)
}

// operation is one request to the API.
type operation struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
}

// do returns the API's object, or its refusal as an error.
func do(ctx context.Context, d Door, o operation) ([]byte, error) {
	return problem.Answer(d.Send(ctx, o.method, o.path, o.query, o.header, o.body))
}

// identity is what a caller's token proves.
type identity struct {
	ID        string `json:"id"`
	Scope     string `json:"scope"`
	Principal string `json:"principal"`
}

// reviews reports whether the caller may answer questions.
func (i identity) reviews() bool {
	return i.Scope == string(token.Reviewer) || i.Scope == string(token.Admin)
}

func whoami(ctx context.Context, d Door) (i identity, err error) {
	answer, err := do(ctx, d, operation{method: http.MethodGet, path: "/v1/whoami"})
	if err != nil {
		return i, err
	}
	return i, decode(answer, &i)
}
