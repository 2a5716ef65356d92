package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// input is what an agent is given for each decision, as far as this one looks at it.
type input struct {
	Steps []step `json:"steps"`
}

type step struct {
	Status      string          `json:"status"`
	Tool        string          `json:"tool"`
	Args        json.RawMessage `json:"args"`
	Result      json.RawMessage `json:"result"`
	Observation struct {
		Message string `json:"message"`
	} `json:"observation"`
}

// decision is what it answers: one of tool_call, complete and fail.
type decision struct {
	Kind    string `json:"kind"`
	Tool    string `json:"tool,omitempty"`
	Args    any    `json:"args,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Result  any    `json:"result,omitempty"`
	Message string `json:"message,omitempty"`
}

type none struct{}

// agent decides from the steps so far, and remembers nothing: it is started once for
// each decision. Another one would ask a model here; this one knows one repair, that
// of a misspelt name.
func agent(in io.Reader) (any, error) {
	var now input
	if err := json.NewDecoder(in).Decode(&now); err != nil {
		return nil, err
	}
	if len(now.Steps) == 0 {
		return decision{Kind: "tool_call", Tool: "check", Args: none{}, Reason: "see what fails"}, nil
	}
	last := now.Steps[len(now.Steps)-1]
	switch {
	case last.Status != "done": // denied, refused, failed: the observation says why
		return decision{Kind: "fail", Message: last.Tool + " did not work: " + last.Observation.Message}, nil
	case last.Tool == "check":
		return afterCheck(last)
	case last.Tool == "read_file":
		return afterReading(last, now.Steps)
	}
	return decision{Kind: "tool_call", Tool: "check", Args: none{}, Reason: "see whether the patch helped"}, nil
}

func afterCheck(last step) (any, error) {
	var found checked
	if err := json.Unmarshal(last.Result, &found); err != nil {
		return nil, err
	}
	switch {
	case found.OK:
		return decision{Kind: "complete", Result: "The package compiles, and its tests pass."}, nil
	case found.Name == "":
		return decision{Kind: "fail", Message: "The checks fail for a reason that I cannot repair: " + found.Said}, nil
	}
	reason := fmt.Sprintf("%s is not defined in %s", found.Name, found.File)
	return decision{Kind: "tool_call", Tool: "read_file", Args: file{found.File}, Reason: reason}, nil
}

func afterReading(last step, steps []step) (any, error) {
	var found checked
	var text contents
	for _, s := range slices.Backward(steps) {
		if s.Tool != "check" {
			continue
		}
		if err := json.Unmarshal(s.Result, &found); err != nil {
			return nil, err
		}
		break
	}
	if err := json.Unmarshal(last.Result, &text); err != nil {
		return nil, err
	}
	right := nearest(found.Name, text.Lines)
	if right == "" || found.Line < 1 || found.Line > len(text.Lines) {
		return decision{Kind: "fail", Message: "Nothing in " + found.File + " is called like " + found.Name + "."}, nil
	}
	old := text.Lines[found.Line-1]
	misspelt := regexp.MustCompile(`\b` + regexp.QuoteMeta(found.Name) + `\b`)
	p := patch{found.File, found.Line, old, misspelt.ReplaceAllString(old, right)}
	return decision{Kind: "tool_call", Tool: "apply_patch", Args: p, Reason: found.Name + " looks like a misspelt " + right}, nil
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

// nearest is the name in the text that is most like the wrong one; empty: none is.
func nearest(wrong string, lines []string) (best string) {
	least := 3 // letters that differ
	for _, name := range word.FindAllString(strings.Join(lines, "\n"), -1) {
		if d := distance(wrong, name); name != wrong && d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters have to be put in, left out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
