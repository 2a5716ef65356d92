package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/placet-dev/placet/inbox"
	"github.com/placet-dev/placet/inbox/gallery"
	"github.com/placet-dev/placet/internal/browsertest"
	"github.com/placet-dev/placet/store/sqlite"
	"github.com/placet-dev/placet/token"
)

// walkers look at the gallery side by side: several pages at a time are faster than one.
const walkers = 3

// Every page in each of its states can be read and used: on a desk and on a phone, by day
// and by night, by eye, by finger and by ear, and under the rules that the inbox gives to
// browsers.
func TestGallery(t *testing.T) {
	t.Parallel()
	url, names := exhibit(t)
	for n := range walkers {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			p := browsertest.New(t)
			p.ReducedMotion() // a picture shows where a colour ends, and not its way there
			for i := n; i < len(names); i += walkers {
				walk(t, p, url, names[i])
			}
		})
	}
}

// walk looks at one state.
func walk(t *testing.T, p *browsertest.Page, url, name string) {
	t.Helper()
	p.Forget()
	p.Desktop()
	p.Light()
	p.Open(url + "/" + name)
	if p.Status() != http.StatusOK {
		t.Errorf("%s: status %d", name, p.Status())
	}
	readable(t, p, name, "light", "desktop")
	outlined(t, p.Tree(), name, !strings.HasPrefix(name, "sign-in"))
	p.Dark()
	readable(t, p, name, "dark", "desktop")
	p.Phone()
	readable(t, p, name, "dark", "phone")
	if name == "queue" && !browsertest.Eval[bool](p, `document.querySelector(".row").getBoundingClientRect().top < innerHeight / 2`) {
		t.Error("on a phone one has to look for what waits")
	}
	p.Light()
	readable(t, p, name, "light", "phone")
	for _, small := range p.SmallTargets() {
		t.Errorf("%s: too small for a finger: %v", name, small)
	}
	clean(t, p, url, name)
}

// readable takes a picture where those are wanted, and looks whether all of it can be read.
func readable(t *testing.T, p *browsertest.Page, name, theme, size string) {
	t.Helper()
	if os.Getenv(browsertest.OutVariable) != "" {
		p.Screenshot("gallery/" + theme + "/" + size + "/" + name)
	}
	for _, wide := range p.Overflow() {
		t.Errorf("%s, %s: wider than the window: %s", name, size, wide)
	}
	for _, low := range p.Contrast() {
		t.Errorf("%s, %s: hard to read: %v", name, theme, low)
	}
}

// clean looks whether everything went as it should: nothing failed, nothing was forbidden,
// nobody else was asked for anything.
func clean(t *testing.T, p *browsertest.Page, origin, name string) {
	t.Helper()
	for _, m := range p.Errors() {
		t.Errorf("%s: the console says %v", name, m)
	}
	for _, v := range p.Violations() {
		t.Errorf("%s: against the content security policy: %+v", name, v)
	}
	for _, r := range p.Foreign(origin) {
		t.Errorf("%s: asked somebody else: %v", name, r)
	}
	if said := p.Dialogs(); len(said) > 0 {
		t.Errorf("%s: dialogs: %q", name, said)
	}
}

// outlined looks whether somebody who cannot see the page finds their way.
func outlined(t *testing.T, tree browsertest.Tree, name string, signedIn bool) {
	t.Helper()
	for _, n := range tree.Nameless() {
		if n.Role == "form" {
			continue // one without a name is only no part of its own; what is in it has one
		}
		t.Errorf("%s: without a name: %v", name, n)
	}
	level, tops := 0, 0
	for _, h := range tree.Find("heading", "") {
		now := int(h.Properties["level"][0] - '0')
		if now > level+1 {
			t.Errorf("%s: the heading %q has level %d below one of level %d", name, h.Name, now, level)
		}
		if level = now; now == 1 {
			tops++
		}
	}
	if tops != 1 {
		t.Errorf("%s: %d headings of level 1", name, tops)
	}
	marks := []string{"main"}
	if signedIn {
		marks = append(marks, "banner", "navigation")
	}
	for _, role := range marks {
		if len(tree.Find(role, "")) == 0 {
			t.Errorf("%s: there is no part %q:\n%v", name, role, tree)
		}
	}
}

// exhibit serves the gallery's states by their names, as the inbox would: with its assets,
// and with the headers that it gives to each answer.
func exhibit(t *testing.T) (url string, names []string) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), t.TempDir()+"/placet.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	pages, err := inbox.New(inbox.Config{Store: st, Door: func(token.Token) inbox.Door { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/assets/") {
			pages.ServeHTTP(w, r)
			return
		}
		show(w, r, pages)
	}))
	t.Cleanup(s.Close)
	for _, state := range gallery.States(gallery.Frame{}) {
		names = append(names, state.Name)
	}
	return s.URL, names
}

var (
	nonceIn = regexp.MustCompile(`'nonce-([^']+)'`)
	styleIn = regexp.MustCompile(`"(/assets/[^"]+\.css)"`)
	codeIn  = regexp.MustCompile(`"(/assets/[^"]+\.js)"`)
)

// show writes one state with the headers and assets of a page of the inbox's own.
func show(w http.ResponseWriter, r *http.Request, pages http.Handler) {
	own := httptest.NewRecorder()
	pages.ServeHTTP(own, httptest.NewRequest(http.MethodGet, "/sign-in", nil))
	first := func(in *regexp.Regexp, text string) string {
		if m := in.FindStringSubmatch(text); m != nil {
			return m[1]
		}
		return ""
	}
	f := gallery.Frame{
		Nonce: first(nonceIn, own.Header().Get("Content-Security-Policy")), Style: first(styleIn, own.Body.String()), Code: first(codeIn, own.Body.String()),
	}
	states := gallery.States(f)
	i := slices.IndexFunc(states, func(s gallery.State) bool { return "/"+s.Name == r.URL.Path })
	if i < 0 || f.Nonce == "" || f.Style == "" || f.Code == "" {
		http.Error(w, "there is no such state, or the inbox names no assets", http.StatusNotFound)
		return
	}
	for name, values := range own.Header() {
		w.Header()[name] = values
	}
	_ = states[i].Page.Render(r.Context(), w) // a page that is cut off fails the test
}
