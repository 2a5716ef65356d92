package browsertest

import "testing"

func TestTree(t *testing.T) {
	t.Parallel()
	p := open(t, `<header><nav aria-label=Main><a href="/">Inbox</a></nav></header>
		<main><h1>Approvals</h1><div><label>Note <textarea required>kept</textarea></label>
		<button aria-describedby=d>Approve</button><p id=d>It runs at once.</p></div>
		<button><svg width=10 height=10></svg></button><input name=q><img src="data:," alt="A chart"><div aria-hidden=true>secret</div></main>`)
	tree := p.Tree()
	for role, name := range map[string]string{"main": "", "navigation": "Main", "link": "Inbox", "heading": "Approvals", "textbox": "Note", "button": "Approve", "image": "A chart"} {
		if got := tree.Find(role, name); len(got) != 1 {
			t.Errorf("%s %q: %v", role, name, got)
		}
	}
	if h := tree.Find("heading", "")[0]; h.Properties["level"] != "1" {
		t.Errorf("%+v", h)
	}
	if n := tree.Find("textbox", "Note")[0]; n.Value != "kept" || n.Properties["required"] != "true" {
		t.Errorf("%+v", n)
	}
	if b := tree.Find("button", "Approve")[0]; b.Description != "It runs at once." {
		t.Errorf("%+v", b)
	}
	if len(tree.Find("StaticText", "secret")) > 0 {
		t.Error("what is hidden is told")
	}
	if got := tree.Nameless(); len(got) != 2 || got[0].Role != "button" || got[1].Role != "textbox" {
		t.Errorf("without a name: %v", got)
	}
	mustSay(t, tree.String(), "  main\n    heading \"Approvals\"\n", "button \"Approve\"")
}
