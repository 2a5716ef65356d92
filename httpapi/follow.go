package httpapi

import (
	"bufio"
	"context"
	stdjson "encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/problem"
	"github.com/placet-dev/placet/token"
)

// Follow tells fn of each event behind a cursor, as they come, until ctx ends, fn
// answers with an error, the daemon stops: [ErrShutdown], or the token is revoked:
// [token.ErrUnauthenticated]. stream may be empty: all.
func (c *Client) Follow(ctx context.Context, stream string, after event.Cursor, fn func(event.Object) error) error {
	res, err := c.send(ctx, http.MethodGet, query(at("events"), "stream", stream, "after", string(after)), nil, []string{"Accept", "text/event-stream"})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return problem.Read(res.StatusCode, b)
	}
	lines := bufio.NewReader(res.Body)
	name := ""
	for {
		line, err := readLine(lines)
		if err != nil {
			if _, why := c.Whoami(ctx); errors.Is(why, token.ErrUnauthenticated) {
				return why
			}
			return unlessOurs(ctx, err)
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			if name == "shutdown" {
				return ErrShutdown
			}
			var o event.Object
			if err := stdjson.Unmarshal([]byte(value), &o); err != nil {
				return fault.New(fault.Internal, "The daemon's event cannot be read.").Because(err)
			}
			if err := fn(o); err != nil {
				return err
			}
		case "":
			name = ""
		}
	}
}

// maxEventLine bounds what is collected of one line: more than any event has.
const maxEventLine = 16 << 20

var errLongLine = fault.New(fault.TooLarge, "The daemon sent a line of more than %d bytes.", maxEventLine).
	Hint("Check that a placet daemon listens there.")

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxEventLine {
			return "", errLongLine
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(line), err
		}
	}
}

func unlessOurs(ctx context.Context, err error) error {
	if errors.Is(err, errLongLine) {
		return err
	}
	return unreachable(ctx, err)
}
