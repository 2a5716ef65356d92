package browsertest

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The contrast of text is computed as WCAG says, with all that shines through.
func TestContrast(t *testing.T) {
	t.Parallel()
	p := New(t)
	for name, tt := range map[string]struct {
		body  string
		dark  bool
		ratio float64 // of the element #x; 0: it is not looked at
		low   bool
	}{
		"black on white":        {`<p id=x>text</p>`, false, 21, false},
		"grey, just enough":     {`<p id=x style="color:#767676">text</p>`, false, 4.54, false},
		"grey, just not enough": {`<p id=x style="color:#777">text</p>`, false, 4.48, true},
		"large":                 {`<p id=x style="color:#777;font-size:24px">text</p>`, false, 4.48, false},
		"large and bold":        {`<b id=x style="color:#777;font-size:19px">text</b>`, false, 4.48, false},
		"large, not enough":     {`<p id=x style="color:#aaa;font-size:24px">text</p>`, false, 2.32, true},
		"on inherited dark":     {`<div style="background:#222"><div><p id=x style="color:#555">text</p></div></div>`, false, 2.14, true},
		"own background":        {`<div style="background:#000"><p id=x style="background:#fff">text</p></div>`, false, 21, false},
		"half background":       {`<p id=x style="background:rgb(0 0 0 / .5);color:#fff">text</p>`, false, 3.98, true},
		"half colour":           {`<p id=x style="color:rgb(0 0 0 / .5)">text</p>`, false, 3.98, true},
		"faded with its back":   {`<div style="opacity:.5;background:#000"><p id=x style="color:#fff">text</p></div>`, false, 3.98, true},
		"faded twice":           {`<div style="opacity:.8"><p id=x style="opacity:.5">text</p></div>`, false, 2.85, true},
		"other spaces":          {`<p id=x style="color:oklch(0.5 0 0)">text</p>`, false, 6, false},
		"dark canvas":           {`<style>:root { color-scheme: light dark }</style><p id=x>text</p>`, true, 18.73, false},
		"light canvas":          {`<style>:root { color-scheme: light dark }</style><p id=x>text</p>`, false, 21, false},
		"media":                 {`<style>@media (prefers-color-scheme: dark) { body { background: #000; color: #333 } }</style><p id=x>text</p>`, true, 1.66, true},
		"value":                 {`<input id=x value=text style="color:#aaa">`, false, 2.32, true},
		"placeholder":           {`<style>::placeholder { color: #ccc }</style><input id=x placeholder=text>`, false, 1.61, true},
		"select":                {`<select id=x style="color:#aaa;background:#fff"><option>text</select>`, false, 2.32, true},
		"before":                {`<style>#x::before { content: "text"; color: #ccc }</style><p id=x></p>`, false, 1.61, true},
		"image":                 {`<p id=x style="background-image:linear-gradient(red, blue)">text</p>`, false, 0, true},
		"image behind a back":   {`<div style="background-image:linear-gradient(red, blue)"><p id=x style="background:#fff">text</p></div>`, false, 21, false},
		"disabled":              {`<button id=x disabled style="color:#ccc">text</button>`, false, 0, false},
		"display none":          {`<p id=x style="display:none;color:#ccc">text</p>`, false, 0, false},
		"visibility":            {`<p id=x style="visibility:hidden;color:#ccc">text</p>`, false, 0, false},
		"for readers only":      {`<p id=x style="position:absolute;width:1px;height:1px;overflow:hidden;color:#ccc">text</p>`, false, 0, false},
		"shadow":                {`<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<p id=x style="color:#ccc">text</p>'</script>`, false, 1.61, true},
	} {
		t.Run(name, func(t *testing.T) {
			p.Light()
			if tt.dark {
				p.Dark()
			}
			p.Open(site(t, map[string]string{"/": tt.body}) + "/")
			var got *Contrast
			for _, c := range p.Contrasts() {
				if strings.Contains(c.Element, "#x") {
					got = &c
				}
			}
			if low := p.Contrast(); tt.low != (len(low) > 0) {
				t.Errorf("too low: %v", low)
			}
			if got == nil && (tt.ratio != 0 || tt.low) {
				t.Fatal("it was not looked at")
			}
			if got != nil && math.Abs(got.Ratio-tt.ratio) > 0.06 {
				t.Errorf("%+v, not %.2f", got, tt.ratio)
			}
		})
	}
}

func TestContrastSays(t *testing.T) {
	t.Parallel()
	p := open(t, `<p id=x style="color:#777">some text</p><p id=y style="background-image:linear-gradient(red, blue)">more</p>`)
	mustSay(t, fmt.Sprint(p.Contrast()), `p#x "some text" "some text": #777777 on #ffffff is 4.48, and has to be 4.5`, "p#y", "there is an image behind it")
}

// What makes a phone's page wider than the phone is found; what scrolls by itself is not.
func TestOverflow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, says string }{
		"fits":           {`<p style="max-width:100%">short</p>`, ""},
		"long word":      {`<p id=w>` + strings.Repeat("x", 200) + `</p>`, "the text of p#w"},
		"broken word":    {`<p style="overflow-wrap:anywhere">` + strings.Repeat("x", 200) + `</p>`, ""},
		"wide":           {`<div id=w style="width:500px">x</div>`, "div#w"},
		"scrolls itself": {`<div style="overflow-x:auto"><pre style="width:900px">x</pre></div>`, ""},
		"margin":         {`<div id=w style="margin-left:300px;width:200px">x</div>`, "reaches to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(t)
			p.Phone()
			p.Open(site(t, map[string]string{"/": tt.body}) + "/")
			got := p.Overflow()
			if (tt.says == "") != (len(got) == 0) || !strings.Contains(fmt.Sprint(got), tt.says) {
				t.Errorf("%q", got)
			}
		})
	}
	t.Run("no viewport", func(t *testing.T) {
		t.Parallel()
		p := New(t)
		p.Phone()
		p.Open("data:text/html,<!doctype html><p>x")
		mustSay(t, fmt.Sprint(p.Overflow()), "is there a meta viewport?")
	})
}

func TestSmallTargets(t *testing.T) {
	t.Parallel()
	p := New(t)
	p.Phone()
	p.Open(site(t, map[string]string{"/": `<style>* { font: 12px/14px sans-serif; box-sizing: border-box } .big { display: inline-block; min-width: 24px; min-height: 24px }</style>
		<button id=small style="width:20px;height:20px;padding:0">x</button>
		<button class=big>fine</button>
		<p>Some text with <a href="/a" id=inline>a link</a> in it.</p>
		<p><a href="/b" id=alone>A link alone</a></p>
		<label style="display:inline-block;padding:6px"><input type=checkbox id=box> With a label that is high</label>
		<input type=checkbox id=bare aria-label=bare>
		<button disabled style="width:5px;height:5px" id=off>x</button>
		<span role=button tabindex=0 id=span style="display:inline-block;width:10px;height:40px">x</span>
		<a href="#m" id=skip style="position:absolute;width:1px;height:1px;overflow:hidden">Skip</a>
		<button id=unseen style="display:none">x</button>`}) + "/")
	var got []string
	for _, s := range p.SmallTargets() {
		id, _, _ := strings.Cut(strings.SplitN(s.Element+"#", "#", 3)[1], " ")
		got = append(got, id)
	}
	if s := strings.Join(got, " "); s != "small alone bare span" {
		t.Errorf("%q: %v", s, p.SmallTargets())
	}
	mustSay(t, fmt.Sprint(p.SmallTargets()), `button#small "x" is 20 by 20`)
}
