package inbox

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/placet-dev/placet/internal/problem"
)

// do carries out one operation of the API: in is its body, nil for none, and as it
// stands where it is JSON already; out takes the answer, nil to drop it. A refusal is the error that it was.
func do(ctx context.Context, d Door, method, path string, in, out any) error {
	body, ok := in.(json.RawMessage)
	if !ok && in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := problem.Answer(d.Send(ctx, method, path, nil, nil, body))
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// get reads one object or list of the API.
func get[T any](ctx context.Context, d Door, path string, query url.Values) (out T, err error) {
	answer, err := problem.Answer(d.Send(ctx, http.MethodGet, path, query, nil, nil))
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer, &out)
}
