package canon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/placet-dev/placet/canon"
)

const ordinaryArgs = `{
  "order_id": "o-7",
  "amount": 500,
  "currency": "EUR",
  "reason": "The parcel arrived damaged; the customer sent two photographs.",
  "notify": true,
  "customer": {"id": 9007199254740993, "name": "Zoë Müller", "tags": ["gold", "returning"]},
  "lines": [{"sku": "A-100", "quantity": 2, "price": 19.90}, {"sku": "B-7", "quantity": 1, "price": 460.2}]
}`

// sortedArgs has its keys in order at every level.
const sortedArgs = `{"amount":500,"currency":"EUR","customer":{"id":9007199254740993,"name":"Ana"},"lines":[{"price":19.9,"sku":"A-100"},{"price":460.2,"sku":"B-7"}],"notify":true,"order_id":"o-7","reason":"The parcel arrived damaged; the customer sent two photographs."}`

// document is about size bytes of records such as tools get and give.
func document(size int) string {
	var b strings.Builder
	b.WriteString(`{"rows":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"row %d","score":%d.%02d,"tags":["a","b\n"],"at":"2026-01-02T03:04:05Z","parent":{"kind":"folder","id":%d}}`, i, i, i%1000, i%100, i/10)
	}
	b.WriteString(`],"count":1}`)
	return b.String()
}

// nested is about size bytes, MaxDepth deep, with every object out of order and
// every byte at the bottom inside all of them.
func nested(size int) string {
	open := strings.Repeat(`{"b":`, canon.MaxDepth-3)
	return open + `[` + strings.TrimSuffix(strings.Repeat(`{"y":1,"x":[2.5,"z"]},`, size/22), ",") + `]` + strings.Repeat(`,"a":null}`, canon.MaxDepth-3)
}

var corpus = []struct{ name, text string }{
	{"args", ordinaryArgs},
	{"args in order", sortedArgs},
	{"10 KB", document(10 << 10)},
	{"100 KB", document(100 << 10)},
	{"1 MiB nested", nested(1 << 20)},
	{"1 MiB brackets", "[" + strings.TrimSuffix(strings.Repeat(strings.Repeat("[", 255)+strings.Repeat("]", 255)+",", (1<<20)/511), ",") + "]"},
	{"1 MiB one string", `"` + strings.Repeat("lorem ipsum ", (1<<20)/12) + `"`},
	{"1 MiB accents", `"` + strings.Repeat("Zoë Müller, ", (1<<20)/14) + `"`},
	{"1 MiB keys reversed", reversedKeys(1<<20, "")},
	{"1 MiB long accented keys", reversedKeys(1<<20, strings.Repeat("é", 200))},
}

// reversedKeys is one object of size bytes with its keys in descending order.
func reversedKeys(size int, prefix string) string {
	n := size / (len(prefix) + 11)
	var b strings.Builder
	for i := n; i > 0; i-- {
		fmt.Fprintf(&b, `,"%s%06d":1`, prefix, i)
	}
	return "{" + b.String()[1:] + "}"
}

func BenchmarkCanonical(b *testing.B) {
	for _, c := range corpus {
		b.Run(c.name, func(b *testing.B) {
			src := []byte(c.text)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canon.Canonical(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	for _, c := range corpus[:5] {
		b.Run(c.name, func(b *testing.B) {
			src := []byte(c.text)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canon.Digest(canon.DomainArgs, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
