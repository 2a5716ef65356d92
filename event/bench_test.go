package event_test

import (
	"testing"
	"time"

	"github.com/placet-dev/placet/event"
)

func BenchmarkSeal(b *testing.B) {
	const id = "call_0199d3a1-6f00-7000-8000-000000000001"
	e := event.New(event.CallStarted, id, event.System, map[string]any{"call_id": id, "attempt": 1})
	h := event.Head{Stream: "call:" + id, Seq: 3, Hash: make([]byte, 32)}
	salt := make([]byte, 16)
	at := time.UnixMicro(1_760_000_000_000_000)
	b.ReportAllocs()
	for b.Loop() {
		event.Seal(e, h, event.MainSpace, "evt_0199d3a1-6f00-7000-8000-000000000001", at, salt)
	}
}
