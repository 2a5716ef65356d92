package rules

import (
	"math"
	"math/big"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/placet-dev/placet/canon"
)

// CEL compares an integer with a double by rounding the integer, so that
// 9007199254740993 <= 9007199254740992.0 holds. exactly puts comparisons without
// rounding in the place of its own, conversions that do not round or cut off, and a
// string() that knows every number.
func exactly() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		switch i := i.(type) {
		case interpreter.InterpretableCall:
			if op, ok := exactOps[i.Function()]; ok {
				return interpreter.NewCall(i.ID(), i.Function(), exactOverload, i.Args(), op), nil
			}
		case interpreter.InterpretableConstructor:
			if i.Type() == types.MapType {
				return orderedLiteral{i}, nil
			}
		}
		return i, nil
	})
}

// exactOverload keeps the planner and the cost table from taking the calls for CEL's own.
const exactOverload = "placet_exact"

var exactOps = map[string]functions.FunctionOp{
	operators.Equals:        func(v ...ref.Val) ref.Val { return types.Bool(equal(v[0], v[1])) },
	operators.NotEquals:     func(v ...ref.Val) ref.Val { return types.Bool(!equal(v[0], v[1])) },
	operators.In:            func(v ...ref.Val) ref.Val { return contains(v[1], v[0]) },
	operators.Less:          ordering(func(c int) bool { return c < 0 }),
	operators.LessEquals:    ordering(func(c int) bool { return c <= 0 }),
	operators.Greater:       ordering(func(c int) bool { return c > 0 }),
	operators.GreaterEquals: ordering(func(c int) bool { return c >= 0 }),

	elementsOp: func(v ...ref.Val) ref.Val { return elements(v[0]) },

	overloads.TypeConvertInt:    func(v ...ref.Val) ref.Val { return toWhole(v[0], types.IntType) },
	overloads.TypeConvertUint:   func(v ...ref.Val) ref.Val { return toWhole(v[0], types.UintType) },
	overloads.TypeConvertDouble: func(v ...ref.Val) ref.Val { return toDouble(v[0]) },
	overloads.TypeConvertString: func(v ...ref.Val) ref.Val { return v[0].ConvertToType(types.StringType) },
}

func ordering(holds func(int) bool) functions.FunctionOp {
	return func(v ...ref.Val) ref.Val {
		c, err := compare(v[0], v[1])
		if err != nil {
			return err
		}
		return types.Bool(holds(c))
	}
}

// compare orders two values, as -1, 0 or 1. failed is a CEL error where they have no order.
func compare(a, b ref.Val) (order int, failed ref.Val) {
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b)
	}
	for _, v := range []ref.Val{a, b} {
		if n, ok := v.(inexact); ok {
			return 0, types.WrapErr(n.err())
		}
	}
	c, ok := a.(traits.Comparer)
	if !ok || a.Type() != b.Type() {
		return 0, types.NewErr("a value of type %s cannot be compared with one of type %s", a.Type().TypeName(), b.Type().TypeName())
	}
	n, ok := c.Compare(b).(types.Int)
	if !ok {
		return 0, types.NewErr("two values of type %s cannot be compared", a.Type().TypeName())
	}
	return int(n), nil
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}

func compareNumbers(a, b ref.Val) (order int, failed ref.Val) {
	if a, ok := a.(types.Int); ok {
		if b, ok := b.(types.Int); ok {
			return cmp(a, b), nil
		}
	}
	if a, ok := a.(types.Double); ok {
		if b, ok := b.(types.Double); ok && !math.IsNaN(float64(a)) && !math.IsNaN(float64(b)) {
			return cmp(a, b), nil
		}
	}
	x, y := bigOf(a), bigOf(b)
	if x == nil || y == nil {
		return 0, types.NewErr("NaN has no order")
	}
	return x.Cmp(y), nil
}

func cmp[T types.Int | types.Double](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// bigOf is the exact value of a number; nil for NaN. Infinities are a big.Float's own.
func bigOf(v ref.Val) *big.Float {
	// A double has 53 bits and an integer 64, so 64 bits hold both as they are.
	f := new(big.Float).SetPrec(64)
	switch v := v.(type) {
	case types.Int:
		return f.SetInt64(int64(v))
	case types.Uint:
		return f.SetUint64(uint64(v))
	case types.Double:
		if math.IsNaN(float64(v)) {
			return nil
		}
		return f.SetFloat64(float64(v))
	}
	return nil
}

// equal compares without coercion: values of two types are not equal, except that
// numbers are compared by value.
func equal(a, b ref.Val) bool {
	if isNumber(a) && isNumber(b) {
		c, failed := compareNumbers(a, b)
		return failed == nil && c == 0
	}
	switch a := a.(type) {
	case traits.Lister:
		b, ok := b.(traits.Lister)
		return ok && equalLists(a, b)
	case traits.Mapper:
		b, ok := b.(traits.Mapper)
		return ok && equalMaps(a, b)
	}
	return types.Equal(a, b) == types.True
}

func equalLists(a, b traits.Lister) bool {
	n := a.Size().(types.Int)
	if n != b.Size().(types.Int) {
		return false
	}
	for i := types.Int(0); i < n; i++ {
		if !equal(a.Get(i), b.Get(i)) {
			return false
		}
	}
	return true
}

func equalMaps(a, b traits.Mapper) bool {
	if a.Size() != b.Size() {
		return false
	}
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		left, _ := a.Find(key)
		right, ok := b.Find(key)
		if !ok || !equal(left, right) {
			return false
		}
	}
	return true
}

// contains is `v in set`: an element of a list, or a key of a map.
func contains(set, v ref.Val) ref.Val {
	switch set := set.(type) {
	case traits.Lister:
		n := set.Size().(types.Int)
		for i := types.Int(0); i < n; i++ {
			if equal(set.Get(i), v) {
				return types.True
			}
		}
		return types.False
	case traits.Mapper:
		_, ok := set.Find(v)
		return types.Bool(ok)
	}
	return types.NewErr("`in` needs a list or a map on its right, not a value of type %s", set.Type().TypeName())
}

// toDouble converts where nothing is rounded.
func toDouble(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.Double:
		return v
	case types.Int, types.Uint:
		d := v.ConvertToType(types.DoubleType)
		if !equal(v, d) {
			return types.NewErr("double() would round %v", v.Value())
		}
		return d
	case types.String:
		return parseDouble(string(v))
	}
	return v.ConvertToType(types.DoubleType)
}

// toWhole converts where nothing is cut off: int(50.99) <= 50 must not hold.
func toWhole(v ref.Val, t *types.Type) ref.Val {
	if d, ok := v.(types.Double); ok && math.Trunc(float64(d)) != float64(d) {
		return types.NewErr("%s() would cut off %v", t.TypeName(), v.Value())
	}
	return v.ConvertToType(t)
}

func parseDouble(s string) ref.Val {
	c, err := canon.Canonical([]byte(s))
	if err != nil || (c[0] != '-' && (c[0] < '0' || c[0] > '9')) {
		return types.NewErr("double() of a text that is not a number")
	}
	f, err := strconv.ParseFloat(string(c), 64)
	if err != nil || !writesBack(f, c) {
		return types.WrapErr(inexact(c).err())
	}
	return types.Double(f)
}
