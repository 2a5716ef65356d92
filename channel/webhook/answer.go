package webhook

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/display"
)

const (
	maxBody   = 64 << 10 // bytes of an answer that are read; then the connection is dropped
	maxQuoted = 200      // bytes of them that are told
	// bodyTime is how long an answer's body may take. The status has decided already.
	bodyTime = time.Second
)

// outcome sorts an answer by its status; its body changes nothing.
func outcome(m delivery.Message, resp *http.Response) delivery.Outcome {
	text := read(resp)
	o := delivery.Outcome{Result: delivery.Failed, Status: resp.StatusCode}
	switch code := resp.StatusCode; {
	case code/100 == 2:
		o.Result = delivery.Arrived
		return o
	case code/100 == 3:
		o.Message = fmt.Sprintf("The answer was %s, a redirect; redirects are not followed.", status(code))
		return o
	case code == http.StatusGone:
		o.Result = delivery.Gone
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		o.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), m.At)
	}
	o.Message = "The answer was " + status(resp.StatusCode) + "."
	// A receiver may repeat what it was sent, in whatever spelling: where headers are
	// secret its words are told to nobody.
	if text != "" && len(m.Target.Headers) == 0 {
		o.Message = "The answer was " + status(resp.StatusCode) + ": " + text
	}
	return o
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
}

// read is the beginning of an answer's body, fit to be shown. A body that is read to
// its end leaves the connection for the next message; any other takes it along.
func read(resp *http.Response) string {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return "" // what follows is no body
	}
	timer := time.AfterFunc(bodyTime, func() { resp.Body.Close() })
	defer timer.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	start := strings.TrimSpace(string(body[:min(len(body), maxQuoted)]))
	if len(body) > maxQuoted {
		return display.Line(strings.ToValidUTF8(start, "")) + "…"
	}
	return display.Line(start)
}

// retryAfter reads a number of seconds or a date; 0 is what says nothing.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(delivery.MaxMaxAge/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), delivery.MaxMaxAge)
}
