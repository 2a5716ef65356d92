package rules

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// adapter turns what decode and the variables give into CEL values. Its maps are
// walked in the order of their keys: in Go's random order args.m.map(k, k) would
// be another presentation at every evaluation, and so never the one approved.
type adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case ref.Val:
		return v
	case map[string]any:
		return &ordered{types.NewStringInterfaceMap(a, v)}
	case map[string]string:
		return &ordered{types.NewStringStringMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

// ordered is a map that is walked in the order of its keys.
type ordered struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (o *ordered) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, o.keys()).Iterator()
}

// Fold implements traits.Foldable.
func (o *ordered) Fold(f traits.Folder) {
	for _, key := range o.keys() {
		value, _ := o.Find(key)
		if !f.FoldEntry(key, value) {
			return
		}
	}
}

// keys are sorted by type and, within one, by value.
func (o *ordered) keys() []ref.Val {
	keys := make([]ref.Val, 0, int(o.Size().(types.Int)))
	for it := o.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int {
		if c := strings.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
			return c
		}
		c, _ := compare(a, b)
		return c
	})
	return keys
}

// orderedLiteral makes the map that an expression spells out an ordered one.
type orderedLiteral struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (l orderedLiteral) Exec(f *interpreter.ExecutionFrame) ref.Val {
	return order(l.InterpretableConstructor.Exec(f))
}

// Eval implements interpreter.Interpretable.
func (l orderedLiteral) Eval(vars interpreter.Activation) ref.Val {
	return order(l.InterpretableConstructor.Eval(vars))
}

func order(v ref.Val) ref.Val {
	if m, ok := v.(traits.Mapper); ok {
		return &ordered{m}
	}
	return v
}
