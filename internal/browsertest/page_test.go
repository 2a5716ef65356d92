package browsertest

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// What a person does, a page does: it opens, follows, types, and goes back.
func TestWalk(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			write(w, `<h1>First</h1><p style="height:3000px">far</p><a href="/second">On</a>
				<form action="/hello"><label>Name <input name=name value=Jo></label> <select name=size><option>small<option value=l> large </select>
				<label><input type=checkbox name=more>More</label><button>Send</button></form>`)
		case "/hello":
			write(w, fmt.Sprintf("<h1>Hello %s %s %s</h1>", r.FormValue("name"), r.FormValue("size"), r.FormValue("more")))
		case "/second":
			w.WriteHeader(http.StatusTeapot)
			write(w, "<h1>Second</h1>")
		}
	}))
	for name, prepare := range map[string]func(*Page){"desktop": (*Page).Desktop, "phone": (*Page).Phone, "script off": (*Page).ScriptOff} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(t)
			prepare(p)
			p.Open(url + "/")
			if got := p.Text("h1"); got != "First" || p.Status() != 200 || p.Title() != "A page" || p.URL() != url+"/" {
				t.Errorf("%q %d %q %q", got, p.Status(), p.Title(), p.URL())
			}
			p.Follow("a >> On")
			if got := p.Text("h1"); got != "Second" || p.Status() != http.StatusTeapot {
				t.Errorf("%q %d", got, p.Status())
			}
			p.Back()
			if got := p.Text("h1"); got != "First" {
				t.Errorf("%q", got)
			}
			p.Reload()
			p.Type("input[name=name]", "hann Ж")
			if got := p.Value("input[name=name]"); got != "Johann Ж" {
				t.Errorf("typed: %q", got)
			}
			p.Fill("input[name=name]", "Ann")
			p.Choose("select", "large")
			if p.Checked("input[name=more]") {
				t.Error("it is checked already")
			}
			p.Click("label >> More")
			p.WaitUntil("document.querySelector('[name=more]').checked")
			p.Follow("button >> Send")
			if got := p.Text("h1"); got != "Hello Ann l on" {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	p := open(t, `<main id=m data-x="1" hidden-not><p>one</p><p> two
		lines </p><p style="display:none">three</p><input value=v disabled></main>`)
	if got := p.Count("p"); got != 3 {
		t.Errorf("%d", got)
	}
	if got := p.Seen("p"); got != 2 {
		t.Errorf("%d", got)
	}
	if got := p.Text("p >> two lines"); got != "two lines" {
		t.Errorf("%q", got)
	}
	if v, ok := p.Attr("main", "data-x"); v != "1" || !ok {
		t.Errorf("%q %t", v, ok)
	}
	if v, ok := p.Attr("main", "title"); v != "" || ok {
		t.Errorf("%q %t", v, ok)
	}
	if got := Eval[[]int](p, "Promise.resolve([1, 2])"); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("%v", got)
	}
	if !strings.Contains(p.HTML(), "hidden-not") {
		t.Error(p.HTML())
	}
}

// Keys move the focus, and do what they do at a desk.
func TestKeys(t *testing.T) {
	t.Parallel()
	p := open(t, `<button id=a aria-label="First">1</button><a href="#b">Second</a><textarea aria-label=Note></textarea>
		<script>var seen = []; addEventListener('keydown', e => seen.push((e.ctrlKey ? 'Control+' : '') + (e.shiftKey ? 'Shift+' : '') + e.key))</script>`)
	if got := p.Focus(); got != "" {
		t.Errorf("%q", got)
	}
	for _, step := range []struct{ key, focus string }{
		{"Tab", `button#a "First"`}, {"Tab", `a "Second"`}, {"Tab", `textarea "Note"`}, {"Shift+Tab", `a "Second"`},
	} {
		p.Press(step.key)
		if got := p.Focus(); got != step.focus {
			t.Errorf("after %s: %s, not %s", step.key, got, step.focus)
		}
	}
	p.PressTo("Enter")
	if !strings.HasSuffix(p.URL(), "#b") {
		t.Errorf("Enter did not follow the link: %s", p.URL())
	}
	p.Click("textarea")
	p.Press("?", "Space", "+", "Control+Enter", "ArrowDown", "Escape", "A")
	p.Paste("größer\n中文")
	if got := p.Value("textarea"); got != "? +Agrößer\n中文" {
		t.Errorf("%q", got)
	}
	want := "Tab Tab Tab Shift+Tab Enter Shift+?   Shift++ Control+Enter ArrowDown Escape Shift+A"
	if got := strings.Join(Eval[[]string](p, "seen"), " "); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	mustSay(t, mustFail(t, p, func(p *Page) { p.Press("Entr") }), `no key "Entr"`)
}

// What nobody could click is not clicked.
func TestClickWaits(t *testing.T) {
	t.Parallel()
	const body = `<button id=b %s onclick="document.title='clicked'">Go</button><div id=cover style="%s;position:fixed;inset:0">Wait</div>
		<script>function free() { b.disabled = false; b.style = ''; cover.remove() }</script>`
	for name, tt := range map[string]struct{ button, cover, says string }{
		"disabled": {"disabled", "display:none", "is disabled"},
		"unseen":   {"style='display:none'", "display:none", "is there, and not seen"},
		"covered":  {"", "", `button#b "Go" is covered by div#cover "Wait"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, fmt.Sprintf(body, tt.button, tt.cover))
			mustSay(t, mustFailWithin(t, brief, p, func(p *Page) { p.Click("#b") }), "click #b", tt.says)
			if p.Title() == "clicked" {
				t.Fatal("it was clicked")
			}
			Eval[any](p, "void setTimeout(free, 100)")
			p.Click("#b")
			p.WaitUntil("document.title === 'clicked'")
		})
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	p := open(t, `<p id=old>old</p><p id=live>0</p><script>
		function later() { setTimeout(() => { old.remove(); live.textContent = '1 new'; document.body.append(Object.assign(document.createElement('h2'), {textContent: 'New'})) }, 50) }</script>`)
	for what, tt := range map[string]struct {
		f    func(*Page)
		says []string
	}{
		"WaitFor":   {func(p *Page) { p.WaitFor("h2 >> New") }, []string{"wait for h2 >> New: there is none"}},
		"WaitGone":  {func(p *Page) { p.WaitGone("#old") }, []string{"wait until #old is gone: it is still seen"}},
		"WaitText":  {func(p *Page) { p.WaitText("#live", "new") }, []string{"it shows 0"}},
		"WaitUntil": {func(p *Page) { p.WaitUntil("document.querySelector('h2')") }, []string{"it is not"}},
		"Text":      {func(p *Page) { p.Text("h2") }, []string{"there is no h2"}},
		"Follow":    {func(p *Page) { p.Follow("#old") }, []string{"no page has loaded"}},
	} {
		said := mustFailWithin(t, brief, p, tt.f)
		mustSay(t, said, tt.says...)
		if strings.Contains(said, "deadline") {
			t.Errorf("%s: %s", what, said)
		}
	}
}

// A failure says what there was to see.
func TestFailureSays(t *testing.T) {
	t.Parallel()
	p := open(t, `<h1>Inbox</h1><p>Three wait</p><input id=f autofocus aria-label=Filter><img src=/missing.png alt=""><script>console.error("it broke", 7); setTimeout(() => { throw new Error("nobody caught me") }); alert("stop")</script>`)
	p.WaitUntil("document.activeElement.id === 'f'")
	said := mustFailWithin(t, brief, p, func(p *Page) { p.WaitFor("h1 >> Outbox") })
	mustSay(t, said, "wait for h1 >> Outbox: there is none", p.URL(), "A page", "Three wait", "it broke 7", "nobody caught me", "missing.png → 404", "stop", `input#f "Filter"`)
	_, rest, _ := strings.Cut(said, "picture")
	path, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "\x89PNG") {
		t.Errorf("%s: %v", path, err)
	}
	if got := p.Dialogs(); !slices.Equal(got, []string{"stop"}) {
		t.Errorf("%q", got)
	}
	mustSay(t, mustFail(t, p, func(p *Page) { p.Open("http://127.0.0.1:1/") }), "open http://127.0.0.1:1/: net::ERR_")
	mustSay(t, mustFail(t, New(t), (*Page).Back), "no page before this one")
}

func TestChooseFails(t *testing.T) {
	t.Parallel()
	p := open(t, `<select id=s><option>small<option disabled>large</select><select id=off disabled><option>x</select><p id=p>no</p>`)
	for says, f := range map[string]func(*Page){
		`select#s has no option "medium", but "small", "large"`: func(p *Page) { p.Choose("#s", "medium") },
		`the option "large" is disabled`:                        func(p *Page) { p.Choose("#s", "large") },
		"select#off is disabled":                                func(p *Page) { p.Choose("#off", "x") },
		`p#p "no" is no select`:                                 func(p *Page) { p.Choose("#p", "x") },
		"there is no #q":                                        func(p *Page) { p.Choose("#q", "x") },
	} {
		mustSay(t, mustFail(t, p, f), says)
	}
	if got := p.Value("#s"); got != "small" {
		t.Errorf("%q was chosen", got)
	}
}
