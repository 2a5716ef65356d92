package request_test

import (
	"testing"

	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

var benched = request.Request{
	RunID: "run_0199d3a1-6f00-7000-8000-000000000001", CallID: "call_0199d3a1-6f00-7000-8000-000000000001",
	Tool: tool.Spec{
		Name: "refund", Description: "Pays money back.", SideEffect: tool.RemoteMutation, TimeoutMS: 30_000,
		InputSchema: []byte(`{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"integer"},"currency":{"type":"string"},"reason":{"type":"string"}},"required":["order_id","amount"]}`),
	},
	Args: []byte(`{"order_id":"o-7","amount":500,"currency":"EUR","reason":"The parcel arrived damaged; the customer sent two photographs."}`),
}

func BenchmarkDecode(b *testing.B) {
	req, err := benched.JSON()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := request.Decode(req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := benched.JSON(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApprovalDigest(b *testing.B) {
	req, err := benched.JSON()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := request.ApprovalDigest("remote_mutation", benched.Args, benched.Args, req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkArgsDigest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := request.ArgsDigest(benched.Args); err != nil {
			b.Fatal(err)
		}
	}
}
