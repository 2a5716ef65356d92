package rules

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
)

// The names that expressions know.
const (
	varTool       = "tool"
	varArgs       = "args"
	varSideEffect = "side_effect"
	varPrincipal  = "principal"
	varRun        = "run"
	varMetadata   = "metadata"
)

var variables = []cel.EnvOption{
	cel.Variable(varTool, cel.StringType),
	cel.Variable(varArgs, cel.DynType),
	cel.Variable(varSideEffect, cel.StringType),
	cel.Variable(varPrincipal, cel.StringType),
	cel.Variable(varRun, cel.MapType(cel.StringType, cel.DynType)),
	cel.Variable(varMetadata, cel.MapType(cel.StringType, cel.StringType)),
}

// vars gives the expressions of one evaluation their variables. The arguments
// are decoded when the first expression asks for them, and once.
type vars struct {
	req  request.Request
	view policy.View

	args    any
	argsErr error // the arguments have no canonical form
	run     map[string]any
}

var _ interpreter.Activation = (*vars)(nil)

// ResolveName implements interpreter.Activation.
func (v *vars) ResolveName(name string) (any, bool) {
	switch name {
	case varTool:
		return types.String(v.req.Tool.Name), true
	case varSideEffect:
		return types.String(v.req.Tool.SideEffect), true
	case varPrincipal:
		return types.String(v.view.Principal), true
	case varArgs:
		return v.decoded(), true
	case varRun:
		return v.runMap(), true
	case varMetadata:
		return v.view.Metadata, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (*vars) Parent() interpreter.Activation { return nil }

func (v *vars) decoded() any {
	if v.args == nil {
		args, err := decode(v.req.Args)
		if err != nil {
			v.argsErr = err
			args = types.NewErr("the arguments cannot be read")
		}
		v.args = args
	}
	return v.args
}

func (v *vars) runMap() map[string]any {
	if v.run == nil {
		v.run = map[string]any{
			"id":   types.String(v.view.RunID),
			"goal": types.String(v.view.Goal),
			"step": types.Int(v.view.Step),
		}
	}
	return v.run
}
