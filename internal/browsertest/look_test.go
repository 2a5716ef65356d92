package browsertest

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestLooks(t *testing.T) {
	t.Parallel()
	p := open(t, `<noscript><p id=off>no script</p></noscript><button style="width:100px;height:100px">Go</button><div style="height:3000px"></div>
		<script>var touched = 0; addEventListener('touchstart', () => touched++)</script>`)
	holds := func(what, expression string) {
		t.Helper()
		if !Eval[bool](p, expression) {
			t.Errorf("%s: %s does not hold", what, expression)
		}
	}
	holds("usual", "innerWidth === 1280 && innerHeight === 800 && devicePixelRatio === 1 && navigator.maxTouchPoints === 0")
	holds("usual", "matchMedia('(prefers-color-scheme: light)').matches && !matchMedia('(prefers-reduced-motion)').matches")
	holds("usual", "Intl.DateTimeFormat().resolvedOptions().timeZone === 'UTC' && document.hasFocus()")
	p.Dark()
	p.ReducedMotion()
	p.TimeZone("Asia/Tokyo")
	holds("changed", "matchMedia('(prefers-color-scheme: dark)').matches && matchMedia('(prefers-reduced-motion: reduce)').matches")
	holds("changed", "new Date(0).getHours() === 9")
	p.Phone()
	p.Reload()
	holds("phone", "innerWidth === 390 && innerHeight === 844 && devicePixelRatio === 2 && navigator.maxTouchPoints > 0 && matchMedia('(pointer: coarse)').matches")
	holds("phone", "matchMedia('(prefers-color-scheme: dark)').matches") // it is kept
	p.Click("button")
	p.WaitUntil("touched === 1")
	p.Light()
	p.Window(640, 400)
	holds("window", "innerWidth === 640 && matchMedia('(prefers-color-scheme: light)').matches")
	if p.Seen("#off") > 0 {
		t.Error("scripts are off")
	}
	p.ScriptOff()
	p.Reload()
	p.WaitFor("#off")
	holds("off", "typeof touched === 'undefined'")
	p.ScriptOn()
	p.Reload()
	p.WaitGone("#off")
	holds("on", "touched === 0")
}

// A picture has the whole page in it, with as many pixels as the device has.
func TestScreenshot(t *testing.T) {
	t.Parallel()
	p := open(t, `<style>body { margin: 0 }</style><div style="height:2000px;background:#080">tall</div>`)
	for name, want := range map[string][2]int{"desktop": {1280, 2000}, "a/phone": {780, 4000}} {
		if name == "a/phone" {
			p.Phone()
		} else {
			p.Desktop()
		}
		path := p.Screenshot(name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if got := picture.Bounds().Size(); got.X != want[0] || got.Y != want[1] {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
		if r, g, b, _ := picture.At(want[0]/2, want[1]-10).RGBA(); r != 0 || g>>8 != 0x88 || b != 0 {
			t.Errorf("its end has the colour %d %d %d", r>>8, g>>8, b>>8)
		}
		if filepath.Base(path) != filepath.Base(name)+".png" {
			t.Error(path)
		}
	}
}

// Pictures, also those of failures, lie where they are wanted.
func TestOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	t.Setenv(OutVariable, dir)
	p := open(t, "<h1>x</h1>")
	if got := p.Screenshot("pages/one"); got != filepath.Join(dir, "pages", "one.png") {
		t.Error(got)
	}
	r := &recorded{TB: t}
	p.tb = r
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Press("nothing like it")
	}()
	<-done
	mustSay(t, r.said, filepath.Join(dir, "failed-TestOut.png"))
	for _, name := range []string{"pages/one.png", "failed-TestOut.png"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
