package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"syscall"

	"github.com/placet-dev/placet/delivery"
)

// step is how far an attempt came before it failed.
type step string

const (
	resolving  step = "resolving"
	connecting step = "connecting"
	securing   step = "securing"
)

// stage is an error of one step.
type stage struct {
	step step
	err  error
}

func (s *stage) Error() string { return string(s.step) + ": " + s.err.Error() }

func (s *stage) Unwrap() error { return s.err }

// trouble is the outcome of an attempt without an answer. People get a sentence of
// ours, never the text of a library; the log gets that.
func (c *Channel) trouble(ctx context.Context, m delivery.Message, e endpoint, err error, answering bool) delivery.Outcome {
	attrs := []slog.Attr{slog.String("delivery", m.DeliveryID), slog.String("target", m.Target.ID), slog.String("error", err.Error())}
	var b *blocked
	if errors.As(err, &b) {
		attrs = append(attrs, slog.String("address", b.addr.String()))
	}
	c.log.LogAttrs(ctx, slog.LevelDebug, "a webhook was not answered", attrs...)
	return failed(sentence(ctx, e.host, err, answering))
}

func sentence(ctx context.Context, host string, err error, answering bool) string {
	var b *blocked
	var s *stage
	reached := !errors.As(err, &s)
	switch {
	case errors.As(err, &b):
		return b.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "The time was up before " + missing(s, host)
	case ctx.Err() != nil:
		return "It was stopped before " + missing(s, host)
	case reached:
		return exchanging(host, err, answering)
	case s.step == resolving:
		return resolvingSentence(host, err)
	case s.step == securing:
		return securingSentence(host, err)
	}
	return connectingSentence(host, err)
}

// missing is what an attempt was waiting for.
func missing(s *stage, host string) string {
	switch {
	case s == nil:
		return host + " answered."
	case s.step == resolving:
		return "the name " + host + " was resolved."
	}
	return "a connection to " + host + " came about."
}

func resolvingSentence(host string, err error) string {
	var dns *net.DNSError
	if errors.Is(err, errNoAddress) || errors.As(err, &dns) && dns.IsNotFound {
		return "The name " + host + " has no address."
	}
	return "The name " + host + " could not be resolved."
}

func connectingSentence(host string, err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refused the connection."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "There is no way to " + host + " from here."
	case errors.Is(err, context.DeadlineExceeded):
		return host + " did not take the connection in time."
	}
	return "No connection to " + host + " came about."
}

func securingSentence(host string, err error) string {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return "The certificate of " + host + " is from an authority that is not known here."
	case errors.As(err, &name):
		return "The certificate of " + host + " is for another name."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "The certificate of " + host + " is not valid at this time."
	case errors.As(err, &verification):
		return "The certificate of " + host + " cannot be verified."
	case errors.As(err, &record):
		return host + " does not speak TLS on this port."
	}
	return "No secure connection (TLS 1.2 or newer) to " + host + " came about."
}

// exchanging is about what happened after a connection was there.
func exchanging(host string, err error, answering bool) string {
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case answering && cut:
		return host + " cut its answer short."
	case answering:
		return "What " + host + " answered is no whole HTTP/1.1 answer, or its headers have more than 64 KiB."
	}
	return host + " closed the connection before it answered."
}
