package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// nowhere is a store that is asked for nothing but whether it was asked.
type nowhere struct{}

var errAsked = errors.New("the store was asked")

func (nowhere) Update(context.Context, func(txn.Tx) error) error { return errAsked }
func (nowhere) View(context.Context, func(txn.Tx) error) error   { return errAsked }
func (nowhere) Watch(...string) (<-chan struct{}, func())        { return nil, func() {} }

// Whatever a queue delivers: no panic, and only what is exactly one of the two forms
// gets as far as the store.
func FuzzHandle(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"approval_id":"apr_1"}`, `{"v":1,"run_id":"r","call_id":"c","tool":"refund","args":{"n":1}}`, `{"v":1,"run_id":"r","call_id":"call_1","tool":"refund","args":{}}`,
		`{"v":1,"approval_id":null,"run_id":"r","call_id":"c","tool":"refund","args":null}`, `{"v":1e0,"approval_id":"x"}`, `[]`, ``, `{"v":1,"approval_id":"\ud800"}`,
		`{"v":1,"run_id":"r\u0000","call_id":"c","tool":"refund","args":{}}`, `{"v":1,"Approval_id":"x"}`, `{"v":1,"args":{},"Args":{}}`, strings.Repeat(`{"v":`, 300),
	} {
		f.Add([]byte(s))
	}
	ex := call.NewExecutor(call.Config{Store: nowhere{}, Tools: &tool.Registry{}})
	f.Fuzz(func(t *testing.T, msg []byte) {
		res, err := ex.Handle(t.Context(), msg)
		if err == nil {
			t.Fatalf("%q: %+v", msg, res)
		}
		if !errors.Is(err, errAsked) {
			return
		}
		var m map[string]json.RawMessage
		if canon.Valid(msg) != nil || json.Unmarshal(msg, &m) != nil || string(m["v"]) != "1" {
			t.Fatalf("%q got as far as the store", msg)
		}
		resume, run := 0, 0
		for k, v := range m {
			empty := string(v) == "null" || string(v) == `""`
			switch k {
			case "v":
			case "approval_id":
				resume++
				if empty {
					resume--
				}
			case "run_id", "call_id", "tool":
				run++
				if empty {
					run--
				}
			case "args":
				run++
			default:
				t.Fatalf("%q: the unknown field %s got as far as the store", msg, k)
			}
		}
		if !(resume == 1 && run == 0 || resume == 0 && run == 4) {
			t.Fatalf("%q: half of two forms got as far as the store", msg)
		}
	})
}
