package decision

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/tool"
)

// CheckEditedArgs holds arguments against the request recorded in d: they have to fit
// its schema, and what doors show in the place of a secret is no value to run with.
// tool.ErrInvalidArguments naming the field.
func CheckEditedArgs(d Decision, args []byte) error {
	r, err := request.Decode(d.Request)
	if err != nil {
		return err
	}
	if err := checkUnmasked(r.Args, args); err != nil {
		return err
	}
	t := tool.Tool{Spec: r.Tool}
	return t.CheckArgs(args)
}

// checkUnmasked refuses an edit that has the mask where the request has something else.
// An editor who sends back what was shown means the secret; what is approved are exactly
// the bytes that were sent, so that the tool would run with the mask itself.
func checkUnmasked(original, edited []byte) error {
	if canon.Valid(edited) != nil {
		return nil // whoever reads them next says what is wrong
	}
	path, found := maskIn(jsonOf(edited), jsonOf(original))
	if !found {
		return nil
	}
	why := fmt.Sprintf("has %s, which only stands for a secret that was not shown; the tool would run with it as it is", tool.Masked)
	return tool.ErrInvalidArguments.Say("The edited field %s %s.", path, why).
		Hint("Write the value that is to run there, or approve or reject without an edit.").
		With(tool.Refusal{Path: path, Problems: []tool.Problem{{Path: path, Problem: why}}})
}

func jsonOf(doc []byte) (v any) {
	_ = json.Unmarshal(doc, &v) // nil: nothing is there to compare with
	return v
}

// maskIn is where edited has the mask and original has not.
func maskIn(edited, original any) (path string, found bool) {
	switch e := edited.(type) {
	case string:
		o, _ := original.(string)
		return "", strings.Contains(e, tool.Masked) && !strings.Contains(o, tool.Masked)
	case []any:
		o, _ := original.([]any)
		for i, v := range e {
			var of any
			if i < len(o) {
				of = o[i]
			}
			if p, found := maskIn(v, of); found {
				return "/" + strconv.Itoa(i) + p, true
			}
		}
	case map[string]any:
		o, _ := original.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(e)) {
			if p, found := maskIn(e[k], o[k]); found {
				return tool.Pointer(k) + p, true
			}
		}
	}
	return "", false
}
