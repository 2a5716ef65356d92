package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestQueueDeliversTwiceAndSendsOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	dir := t.TempDir()
	if err := run(t.Context(), &out, dir); err != nil {
		t.Fatal(err)
	}
	for line, times := range map[string]int{
		"call-ana waits for a person\n": 2,
		"call-ben waits for a person\n": 2,
		"succeeded \"sent to ana\"\n":   2,
		"succeeded \"sent to ben\"\n":   2,
		"mails sent: 2\n":               1,
	} {
		if got := strings.Count(out.String(), line); got != times {
			t.Errorf("%q comes %d times, want %d", line, got, times)
		}
	}
	for _, left := range []string{"ready", "taken"} {
		if files, err := os.ReadDir(filepath.Join(dir, left)); err != nil || len(files) > 0 {
			t.Errorf("%s holds %v, %v", left, files, err)
		}
	}
	t.Log(out.String())
}

func TestQueueOfAnotherDay(t *testing.T) {
	t.Parallel()
	var first, again strings.Builder
	dir := t.TempDir()
	if err := run(t.Context(), &first, dir); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), &again, dir); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(again.String(), "mails sent: 0\n") {
		t.Errorf("the same messages on another day:\n%s", again.String())
	}
}

func TestQueueDropsAndKeeps(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	dir := t.TempDir()
	q, err := openQueue(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, message := range map[string]string{"nonsense": "nonsense", "early": `{"v":1,"approval_id":"apr_none"}`} {
		if err := q.send(name, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), &out, dir); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nonsense is dropped") || !strings.Contains(out.String(), "early failed") {
		t.Errorf("got\n%s", out.String())
	}
	if files, err := os.ReadDir(q.taken); err != nil || len(files) != 1 || files[0].Name() != "early" {
		t.Errorf("kept %v, %v", files, err)
	}
}
