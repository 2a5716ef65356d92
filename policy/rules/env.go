package rules

import (
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxPattern bounds the compiled size of a regular expression.
const maxPattern = 20_000

// environment is the language of the rules. It is the same for all policies and
// takes a while to make.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("types of CEL: %w", err)
	}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{registry}),
		cel.CustomTypeProvider(registry),
		cel.StdLib(),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.RegexProgramSizeLimit(maxPattern),
	}
	return cel.NewCustomEnv(append(options, variables...)...)
})

// compiling guards environment: while it looks for the name that an unknown one may
// have meant, cel-go v0.33.2 writes to it without a lock. Evaluating needs none.
var compiling sync.Mutex

// program plans a checked expression.
func program(env *cel.Env, ast *cel.Ast) (cel.Program, error) {
	return env.Program(ast,
		exactly(),
		cel.EvalOptions(cel.OptOptimize),
		cel.CostTracking(exactCost{}),
		cel.CostLimit(CostLimit),
		// Every turn of a loop looks whether the time is up.
		cel.InterruptCheckFrequency(1),
	)
}

// exactCost prices the comparisons of exact.go as CEL prices its own.
type exactCost struct{}

var _ cost.ActualCostEstimator = exactCost{}

// CallCost implements cost.ActualCostEstimator.
func (exactCost) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	if overload != exactOverload {
		return nil
	}
	n := uint64(1)
	switch {
	case function == operators.In:
		n += weight(args[1], 0)
	case len(args) == 2 && isContainer(args[0]) && isContainer(args[1]):
		// equal looks no further where the sizes differ.
		if args[0].(traits.Sizer).Size() == args[1].(traits.Sizer).Size() {
			n += weight(args[0], 0)
		}
	case len(args) == 2:
		n += min(textCost(args[0]), textCost(args[1]))
	}
	return &n
}

func isContainer(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// weight is what looking at all of v costs, added to sum. It stops counting at the limit.
func weight(v ref.Val, sum uint64) uint64 {
	switch v := v.(type) {
	case traits.Lister:
		for it := v.Iterator(); sum <= CostLimit && it.HasNext() == types.True; {
			sum = weight(it.Next(), sum+1)
		}
	case traits.Mapper:
		for it := v.Iterator(); sum <= CostLimit && it.HasNext() == types.True; {
			value, _ := v.Find(it.Next())
			sum = weight(value, sum+1)
		}
	default:
		sum += textCost(v)
	}
	return sum
}

// textCost is CEL's price for looking at a text.
func textCost(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	}
	return 0
}
