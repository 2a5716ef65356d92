package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"

	"github.com/placet-dev/placet/delivery"
)

// Options are what a [Channel] may be told.
type Options struct {
	// AllowPrivate also allows 10/8, 172.16/12, 192.168/16, 100.64/10 and fc00::/7.
	// Default: they are refused.
	AllowPrivate bool
	// AllowHTTP also allows http:// to other hosts than this one. Default: it is refused.
	AllowHTTP bool
	// Lookup resolves a name. Default: the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Log gets, at debug level, what a sentence leaves out. Default: slog.Default().
	Log *slog.Logger
}

// Channel sends webhooks. It is safe for concurrent use.
type Channel struct {
	allowPrivate bool
	allowHTTP    bool
	lookup       func(ctx context.Context, host string) ([]netip.Addr, error)
	log          *slog.Logger
	transport    *http.Transport

	// The tests' own: where a connection leads, and whose certificates count.
	connect func(ctx context.Context, e endpoint, to netip.AddrPort) (net.Conn, error)
	roots   *x509.CertPool
}

var _ delivery.Channel = (*Channel)(nil)

// New is a channel that is ready.
func New(o Options) *Channel {
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &Channel{allowPrivate: o.AllowPrivate, allowHTTP: o.AllowHTTP, lookup: o.Lookup, log: o.Log}
	c.connect = c.connectTo
	c.transport = c.newTransport()
	return c
}

// Check refuses a target whose URL, headers or secret can never work, or may not be
// used as this channel is set up. It resolves no name.
func (c *Channel) Check(t delivery.Target) error {
	e, err := readTarget(t)
	if err != nil {
		return err
	}
	return c.permit(e)
}

// readTarget refuses what no channel of this kind can work with.
func readTarget(t delivery.Target) (endpoint, error) {
	e, err := readURL(t.URL)
	if err != nil {
		return endpoint{}, err
	}
	if err := checkHeaders(t.Headers); err != nil {
		return endpoint{}, err
	}
	for _, secret := range [][]byte{t.Secret, t.OldSecret} {
		if secret != nil && (len(secret) < delivery.MinSecret || len(secret) > delivery.MaxSecret) {
			return endpoint{}, delivery.ErrUsage.Say("The secret has %d bytes; %d to %d are allowed.", len(secret), delivery.MinSecret, delivery.MaxSecret)
		}
	}
	return e, nil
}

// Send makes one attempt. What is wrong with the target in itself is Refused; what
// this process may not reach, as it is set up today and as names resolve now, is Failed.
func (c *Channel) Send(ctx context.Context, m delivery.Message) delivery.Outcome {
	if ctx.Err() != nil {
		return delivery.Outcome{Result: delivery.NotSent, Message: "Nothing was sent: the time was up before it began."}
	}
	e, err := readTarget(m.Target)
	switch {
	case err != nil:
		return delivery.Outcome{Result: delivery.Refused, Message: err.Error()}
	case len(m.Target.Secret) == 0:
		return delivery.Outcome{Result: delivery.Refused, Message: "Nothing was sent: the target has no secret to sign with."}
	}
	if err := c.permit(e); err != nil {
		return failed(err.Error())
	}
	return c.attempt(ctx, m, e)
}

func failed(sentence string) delivery.Outcome {
	return delivery.Outcome{Result: delivery.Failed, Message: sentence}
}

func (c *Channel) attempt(ctx context.Context, m delivery.Message, e endpoint) delivery.Outcome {
	dialing, cancel := context.WithCancel(ctx)
	defer cancel() // also of a connection that was still being made when another was free
	to, err := c.resolve(ctx, e)
	if err != nil {
		return c.trouble(ctx, m, e, err, false)
	}
	var answering atomic.Bool
	traced := httptrace.WithClientTrace(withRoute(ctx, route{dialing, e, to}), &httptrace.ClientTrace{
		GotFirstResponseByte: func() { answering.Store(true) },
	})
	req, err := request(traced, m, e)
	if err != nil {
		return c.trouble(ctx, m, e, err, false)
	}
	// The transport by itself: no redirect, no cookie, no user from the URL.
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return c.trouble(ctx, m, e, err, answering.Load())
	}
	defer resp.Body.Close()
	return outcome(m, resp)
}

// request is the message as it is sent. Its time and signature are of this attempt.
func request(ctx context.Context, m delivery.Message, e endpoint) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "placet")
	for name, value := range m.Target.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", delivery.ContentType)
	req.Header.Set(headerID, m.DeliveryID)
	req.Header.Set(headerTimestamp, timestamp(m.At))
	req.Header.Set(headerSignature, Sign(m.Target.Signing(m.At), m.DeliveryID, m.At, m.Body))
	return req, nil
}
