package cli

import (
	"context"
	"log/slog"
)

// logger tells people on standard error what no caller could be told.
func (a *app) logger() *slog.Logger { return slog.New(logHandler{a: a}) }

// logHandler prints a record in one line, escaped and masked like everything else.
type logHandler struct {
	a     *app
	attrs []slog.Attr
}

func (h logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	add := func(at slog.Attr) bool {
		text += " " + at.Key + "=" + at.Value.String()
		return true
	}
	for _, at := range h.attrs {
		add(at)
	}
	r.Attrs(add)
	h.a.note("placet: %s", text)
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return h
}

func (h logHandler) WithGroup(string) slog.Handler { return h }
