package decision_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/tool"
)

// A story is a text of commands, each with what came of it below "----". To write
// what they give now: go test ./decision -rewrite, and read the difference.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := (&story{t: t, now: noon}).tell(string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-story +now):\n%s", file, diff)
			}
		})
	}
}

type story struct {
	t    *testing.T
	now  time.Time
	d    decision.Decision
	seen string // the digest that was shown last
}

// tell runs a story and returns it with what came of its commands. Comments and
// blank lines stay.
func (s *story) tell(text string) string {
	var out strings.Builder
	inAnswer := false
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			inAnswer = false
			fmt.Fprintln(&out, line)
		case inAnswer || line == "----":
			inAnswer = true // what stood there is told anew
		default:
			fmt.Fprintf(&out, "%s\n----\n%s\n", line, s.do(strings.Fields(line)))
		}
	}
	return out.String()
}

func (s *story) do(words []string) string {
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	switch words[0] {
	case "ask":
		s.d = asked(s.t)
		s.d.CreatedAt, s.d.ExpiresAt, s.d.GrantTTL = s.now, time.Time{}, s.duration(args["grant"])
		if ttl := s.duration(args["ttl"]); ttl > 0 {
			s.d.ExpiresAt = s.now.Add(ttl)
		}
		return s.show()
	case "show":
		s.seen = s.d.Digest
		return s.show()
	case "wait":
		s.now = s.now.Add(s.duration(args["for"]))
		return s.now.Format("15:04:05.000000")
	case "alter": // by hand, in the store
		s.d.Presentation = []byte(`{"title":"` + args["title"] + `"}`)
		if _, ok := args["digest"]; ok {
			s.d.Digest = must(s.t)(s.d.Binding())
		}
		return s.show()
	}
	ch, err := s.d.Step(s.command(words[0], args), s.now)
	if err != nil {
		return "refused: " + reason(err)
	}
	s.d = ch.Next
	text := s.show()
	for _, e := range ch.Events {
		text += fmt.Sprintf("\n%s by %s %s", e.Type, e.Actor, e.Payload)
	}
	if ch.Refuse != nil {
		text += "\nrefused: " + reason(ch.Refuse)
	}
	return text
}

func (s *story) command(word string, args map[string]string) decision.Command {
	answer := decision.Answer{Approved: word == "approve", By: args["by"], Note: args["note"], Shown: args["shown"]}
	if args["shown"] == "it" {
		answer.Shown = s.seen
	}
	if edit, ok := args["edit"]; ok {
		answer.EditedArgs = []byte(edit)
	}
	switch word {
	case "approve", "reject":
		c := decision.Decide{Answer: answer, Principal: args["principal"], Checked: s.d.Digest}
		_, c.Bound = args["shown"]
		if _, ok := args["elsewhere"]; ok {
			c.Waiting = decision.ErrRunState
		}
		if _, ok := args["unfit"]; ok {
			c.Unfit = tool.ErrInvalidArguments
		}
		return c
	case "withdraw":
		return decision.Withdraw{By: args["by"], Note: args["note"], Principal: args["principal"]}
	case "expire":
		return decision.Expire{}
	case "consume":
		return decision.Consume{Attempt: 1}
	case "return":
		return decision.Consume{}
	case "supersede":
		return decision.Supersede{}
	}
	s.t.Fatalf("no command %q", word)
	return nil
}

func (s *story) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *story) show() string {
	d := s.d
	text := string(d.Status)
	add := func(format string, on bool, args ...any) {
		if on {
			text += fmt.Sprintf(format, args...)
		}
	}
	add(" until %s", d.Status == decision.Pending && !d.ExpiresAt.IsZero(), d.ExpiresAt.Format("15:04:05"))
	add(" %s by %s", d.Choice != "", d.Choice, d.DecidedBy)
	add(" at %s", !d.DecidedAt.IsZero(), d.DecidedAt.Format("15:04:05"))
	add(", good until %s", d.Status == decision.Approved && !d.GrantExpiresAt.IsZero(), d.GrantExpiresAt.Format("15:04:05"))
	add(", runs %s", d.EditedArgs != nil, d.EditedArgs)
	add(", spent by attempt %d", d.ConsumedBy != 0, d.ConsumedBy)
	add(", %q", d.Note != "", d.Note)
	return text
}
