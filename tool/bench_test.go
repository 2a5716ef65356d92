package tool

import (
	"context"
	"testing"
)

func BenchmarkCheckArgs(b *testing.B) {
	tl := withSchema(b, refundSchema)
	for name, args := range map[string]string{
		"valid":   `{"order_id":"o-7","amount":500,"note":"hello there","items":[1,2,3]}`,
		"invalid": `{"order_id":"o-7","amount":0,"note":"hello there","items":[1,2,3]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = tl.CheckArgs([]byte(args))
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		args := []byte(`{"order_id":"o-7","amount":500,"note":"hello there","items":[1,2,3]}`)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_ = tl.CheckArgs(args)
			}
		})
	})
}

func BenchmarkCompileSchema(b *testing.B) {
	for b.Loop() {
		_ = mustCompile(b, refundSchema)
	}
}

func BenchmarkInvoke(b *testing.B) {
	tl := withSchema(b, refundSchema)
	c := Call{CallID: "call_1", Args: []byte(`{"order_id":"o-7","amount":500}`)}
	b.ReportAllocs()
	for b.Loop() {
		if o := Invoke(context.Background(), tl, c, nil); o.Status != Succeeded {
			b.Fatal(o)
		}
	}
}
