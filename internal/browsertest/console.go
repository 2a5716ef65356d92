package browsertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
)

// Message is one that stands in the page's console.
type Message struct {
	Level string // as the console has it: log, warning, error, …; exception: an error that nobody caught
	Text  string
	URL   string // where it comes from; may be empty
}

func (m Message) String() string {
	if m.URL == "" {
		return m.Level + ": " + m.Text
	}
	return m.Level + ": " + m.Text + " (" + m.URL + ")"
}

// bad are the levels of what should not have happened.
var bad = []string{"error", "assert", "exception"}

// Console is everything that the page and the browser wrote to the console.
func (p *Page) Console() []Message {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	return slices.Clone(p.rec.console)
}

// Errors are the messages of what should not have happened: errors, failed assertions,
// exceptions, and what the browser says of requests that failed.
func (p *Page) Errors() []Message {
	return slices.DeleteFunc(p.Console(), func(m Message) bool { return !slices.Contains(bad, m.Level) })
}

func messageOf(ev any) Message {
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		var said []string
		for _, a := range ev.Args {
			said = append(said, textOf(a))
		}
		m := Message{Level: string(ev.Type), Text: strings.Join(said, " ")}
		if ev.StackTrace != nil && len(ev.StackTrace.CallFrames) > 0 {
			m.URL = ev.StackTrace.CallFrames[0].URL
		}
		return m
	case *runtime.EventExceptionThrown:
		d := ev.ExceptionDetails
		m := Message{Level: "exception", Text: d.Text, URL: d.URL}
		if d.Exception != nil {
			m.Text = strings.TrimSpace(m.Text + " " + textOf(d.Exception))
		}
		return m
	case *log.EventEntryAdded:
		return Message{Level: string(ev.Entry.Level), Text: ev.Entry.Text, URL: ev.Entry.URL}
	}
	return Message{Level: "error", Text: fmt.Sprintf("a message of the type %T is not known", ev)}
}

// textOf is a value as the console shows it.
func textOf(o *runtime.RemoteObject) string {
	switch {
	case o.Type == runtime.RemoteObjectTypeString:
		var s string
		if err := json.Unmarshal(o.Value, &s); err == nil {
			return s
		}
	case o.Description != "":
		return o.Description
	case o.UnserializableValue != "":
		return string(o.UnserializableValue)
	}
	return string(o.Value)
}

// Violation is something that the page's content security policy forbade.
type Violation struct {
	Directive  string // such as script-src-elem
	Blocked    string // address of what was not loaded; empty: it stands in the page, or there is none
	Kind       string // such as kInlineViolation
	ReportOnly bool
}

// Violations are what the page's content security policy forbade.
func (p *Page) Violations() []Violation {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	return slices.Clone(p.rec.violations)
}

func violationOf(i *audits.InspectorIssue) (v Violation, ok bool) {
	if i.Details == nil || i.Details.ContentSecurityPolicyIssueDetails == nil {
		return v, false
	}
	d := i.Details.ContentSecurityPolicyIssueDetails
	return Violation{Directive: d.ViolatedDirective, Blocked: d.BlockedURL, Kind: string(d.ContentSecurityPolicyViolationType), ReportOnly: d.IsReportOnly}, true
}
