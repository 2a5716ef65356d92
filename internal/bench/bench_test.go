package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/job"
)

// TestMain lets the test binary stand for the program where it starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"-probe", serveWord, job.RunnerCommand}, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestSections runs every section but the build, with next to no work: no figure
// is judged, only that each comes about.
func TestSections(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := &bench{out: io.MultiWriter(&out, t.Output()), dir: t.TempDir(), slice: 2 * time.Millisecond, rounds: 2, records: 20, parked: 60, probed: 60}
	if err := b.sections(t.Context(), "machine,count,rate,allowed,canon,records,sweep,decided,longpolls,mcp"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"cycle: 4 transactions", "allowed call: 2 transactions",
		"  1 callers:", " 16 callers:", "256 callers:", "MB/s", "50 of 60", "all 20 overdue at once", "memory, long file: heap", "16 at once: 960 decisions", "question: ", "call: ", "2026-07-28: GET p50", "2025-11-25: GET p50",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in the output", want)
		}
	}
}

func TestRatios(t *testing.T) {
	t.Parallel()
	floor, product := sample{rates: []float64{400, 100, 800}}, sample{rates: []float64{50, 25, 100}}
	if r := product.ratio(&floor, 4); r != 0.5 { // 0.5, 1 and 0.5: each turn with its neighbour
		t.Errorf("ratio %v", r)
	}
	if m := median(nil); m != 0 {
		t.Errorf("the median of nothing is %v", m)
	}
	s := sample{took: []time.Duration{3, 1, 2, 4}}
	if p := s.percentile(50); p != 2 {
		t.Errorf("p50 %v", p)
	}
}
