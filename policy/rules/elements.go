package rules

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// elementsOp stands around what `in` and the loops look into in the condition of a rule
// that allows. No expression can spell it.
const elementsOp = "@placet_elements"

// elementsOnly rewrites a condition so that `in` and loops take no map but one that
// its author wrote or named. CEL looks at the keys of a map: args.to.all(x, x in ours)
// would be true of {"to": {"ana": "mallory"}} as it is of {"to": ["ana"]}, and which of
// the two it is, whoever makes the call chooses.
func elementsOnly(a *cel.Ast) {
	whole := a.NativeRep()
	w := &elementsWriter{ExprFactory: ast.NewExprFactory(), id: ast.MaxID(whole)}
	ast.PostOrderVisit(whole.Expr(), ast.NewExprVisitor(w.visit))
}

type elementsWriter struct {
	ast.ExprFactory
	id int64 // the highest that is taken
}

func (w *elementsWriter) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		c := e.AsCall()
		if args := c.Args(); c.FunctionName() == operators.In && len(args) == 2 {
			e.SetKindCase(w.NewCall(e.ID(), operators.In, args[0], w.elements(args[1])))
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		if c.HasIterVar2() {
			e.SetKindCase(w.NewComprehensionTwoVar(e.ID(), w.elements(c.IterRange()), c.IterVar(), c.IterVar2(), c.AccuVar(),
				c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()))
		} else {
			e.SetKindCase(w.NewComprehension(e.ID(), w.elements(c.IterRange()), c.IterVar(), c.AccuVar(),
				c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()))
		}
	}
}

// elements puts the operator around set, unless its author can only have meant what it is.
func (w *elementsWriter) elements(set ast.Expr) ast.Expr {
	switch {
	case set.Kind() == ast.MapKind, set.Kind() == ast.ListKind:
		return set
	case set.Kind() == ast.IdentKind && (set.AsIdent() == varMetadata || set.AsIdent() == varRun):
		return set
	}
	w.id++
	return w.NewCall(w.id, elementsOp, set)
}

// elements is set, if it is no map.
func elements(set ref.Val) ref.Val {
	if _, ok := set.(traits.Mapper); ok {
		return types.NewErr("a list is expected where the value is a map, of which only the keys would be looked at")
	}
	return set
}
