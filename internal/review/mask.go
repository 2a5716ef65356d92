package review

import (
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/request"
)

// Mask knows the secrets of a decision: an approval's by its tool's schema, those in the
// answer to a question by its form.
func Mask(d decision.Decision) *display.Mask {
	m := &display.Mask{}
	Teach(m, d)
	return m
}

// Teach adds a decision's secrets to what m knows.
func Teach(m *display.Mask, d decision.Decision) {
	if d.Type == decision.Question {
		m.Teach(d.Form)
		m.Learn(d.Input)
		return
	}
	if req, err := request.Decode(d.Request); err == nil {
		m.Teach(req.Tool.InputSchema)
		m.Learn(req.Args)
	}
	m.Learn(d.EditedArgs)
}
