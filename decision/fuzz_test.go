package decision_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/request"
)

// Whatever an answer says: it is recorded exactly, bound to what was asked, or it is
// refused and there is nothing to write.
func FuzzDecide(f *testing.F) {
	f.Add(true, "ana", "", []byte(nil), "", false, int64(0))
	f.Add(true, "ana", "ok", []byte(`{"n":2}`), "", true, int64(1))
	f.Add(false, "ana", "no\n", []byte(nil), "x", true, int64(3_600_000_000))
	f.Add(true, "", "\xff", []byte(`{"n":1,"n":2}`), "", false, int64(3_600_000_001))
	f.Add(true, "a\x00", "", []byte(`{"amount":1e400}`), "", false, int64(-1))
	f.Add(true, "é", "\u202e", []byte(" {\"order\":\"\\u0061\"}\n"), "", false, int64(1<<62))
	f.Fuzz(func(t *testing.T, approved bool, by, note string, edited []byte, shown string, bound bool, after int64) {
		d := asked(t)
		if len(edited) == 0 {
			edited = nil
		}
		a := decision.Answer{Approved: approved, By: by, Note: note, EditedArgs: edited, Shown: shown}
		usable := by != "" && utf8.ValidString(by) && utf8.ValidString(note) && utf8.RuneCountInString(by) <= decision.MaxBy &&
			utf8.RuneCountInString(note) <= decision.MaxNote && !bytes.ContainsRune([]byte(by+note), 0) && (approved || edited == nil)
		if err := decision.CheckAnswer(a); (err == nil) != usable {
			t.Fatalf("%+v: %v", a, err)
		}
		now := noon.Add(microseconds(after))
		ch, err := d.Step(decision.Decide{Answer: a, Bound: bound, Checked: d.Digest}, now)
		if err != nil {
			return
		}
		n := ch.Next
		late := now.After(d.ExpiresAt)
		switch {
		case late != (n.Status == decision.Expired) || late != (ch.Refuse != nil):
			t.Fatalf("at %v: %s", now, n.Status)
		case late:
			return
		case (bound || shown != "") && shown != d.Digest:
			t.Fatal("taken for another showing")
		case n.DecidedBy != by || n.Note != note || !n.DecidedAt.Equal(now) || n.Epoch != d.Epoch || (n.Status == decision.Approved) != approved:
			t.Fatalf("recorded %+v", n)
		}
		if !approved {
			return
		}
		if err := n.SoundGrant(); by != "" && err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(n.EditedArgs, edited) || (edited != nil) != (n.EffectiveDigest != "") {
			t.Fatalf("recorded the edit %q", n.EditedArgs)
		}
		if edited != nil {
			if digest, err := request.ArgsDigest(edited); err != nil || digest != n.EditedDigest {
				t.Fatalf("digest %s, %v", n.EditedDigest, err)
			}
		}
	})
}
