package browsertest

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// view is how a page is looked at.
type view struct {
	width, height int64   // CSS pixels
	scale         float64 // device pixels to a CSS pixel
	touch, mobile bool
	scheme        string // prefers-color-scheme
	motion        string // prefers-reduced-motion
	scriptOff     bool
	zone          string
}

// usual is a desktop in daylight.
var usual = view{width: 1280, height: 800, scale: 1, scheme: "light", motion: "no-preference", zone: "UTC"}

// Desktop looks at the page in a window of 1280 by 800, as a new page is.
func (p *Page) Desktop() { p.tb.Helper(); p.resize(1280, 800, 1, false) }

// Phone looks at the page on a phone: 390 by 844, two device pixels to each, touched
// instead of clicked.
func (p *Page) Phone() { p.tb.Helper(); p.resize(390, 844, 2, true) }

// Window looks at the page in a window of another size, as after zooming, say.
func (p *Page) Window(width, height int64) { p.tb.Helper(); p.resize(width, height, 1, false) }

func (p *Page) resize(width, height int64, scale float64, phone bool) {
	p.tb.Helper()
	p.to.width, p.to.height, p.to.scale, p.to.touch, p.to.mobile = width, height, scale, phone, phone
	p.look()
}

// Dark prefers dark colours.
func (p *Page) Dark() { p.tb.Helper(); p.to.scheme = "dark"; p.look() }

// Light prefers light colours, as a new page does.
func (p *Page) Light() { p.tb.Helper(); p.to.scheme = "light"; p.look() }

// ReducedMotion prefers that little moves.
func (p *Page) ReducedMotion() { p.tb.Helper(); p.to.motion = "reduce"; p.look() }

// ScriptOff turns the scripts off of pages that are opened from now on.
func (p *Page) ScriptOff() { p.tb.Helper(); p.to.scriptOff = true; p.look() }

// ScriptOn turns them on again, as in a new page.
func (p *Page) ScriptOn() { p.tb.Helper(); p.to.scriptOff = false; p.look() }

// TimeZone is where the page is looked at, such as Asia/Tokyo. Default: UTC.
func (p *Page) TimeZone(name string) { p.tb.Helper(); p.to.zone = name; p.look() }

// look tells the browser all of it: it forgets what is not repeated.
func (p *Page) look() {
	p.tb.Helper()
	v := p.to
	p.must("look at the page so", func(ctx context.Context) error {
		if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: v.width, Height: v.height, DeviceScaleFactor: v.scale, Mobile: v.mobile,
		}); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: v.touch}); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: v.scheme}, {Name: "prefers-reduced-motion", Value: v.motion},
		}}); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: v.zone}); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.scriptOff})
		return err
	})
}
