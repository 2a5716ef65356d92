// Package rules is a policy written as CEL expressions: a list of rules, of which
// the first that matches decides, and a fallback where none does.
//
//	p, err := rules.New([]rules.Rule{{
//		Name:    "small refunds",
//		When:    `tool == "refund" && args.amount <= 50`,
//		Outcome: policy.Allow,
//	}}, policy.Default())
//
// # What an expression sees
//
//	tool          the tool's name, a string
//	side_effect   its class, a string
//	args          the arguments, as they will be carried out
//	principal     who asks, as proved; "" where it is not known
//	run           {id, goal, step} of an agent's run
//	metadata      what the caller attached, texts by name
//
// The functions and macros are those of the CEL standard. There is no clock and
// no input besides these, so the same question has the same answer.
//
// # Numbers
//
// Arguments are not coerced: "500" is a text, and comparing it with a number by
// < or > is an error. Numbers keep their exact value, whatever their spelling: 1, 1.0
// and 10e-1 are one. Integers of 64 bits are CEL's int and, above its range, uint.
// Other numbers are doubles if a double writes them back with the same digits.
// What is left, such as 0.1000000000000000055 or 2^64+1, equals nothing but
// itself, can be shown and turned into a string, and in < and arithmetic it is
// an error. Comparisons between integers and doubles are exact, also beyond 2^53.
//
// Arithmetic does not mix integers and doubles; write double(args.quantity). The
// conversion is an error where it would round, as int() and uint() are where they would
// cut off a fraction. A quotient of integers is cut off, as ever in CEL. Sums and products of doubles
// round as doubles do.
//
// # Errors
//
// A rule that cannot be evaluated decides all the same: a person has to. That holds
// for a missing argument (use has(args.x) where it may be missing), types that do not
// fit, a condition that is neither true nor false, and an expression that costs more than
// [CostLimit] or takes longer than [TimeLimit]. Neither is such a rule skipped nor is
// anything allowed by it. A presentation or capability that cannot be evaluated is a
// policy error, and nothing runs.
//
// # Partial comparisons
//
// A rule that allows looks at whole values. startsWith, endsWith and contains on an
// argument would also let through what stands around the part they look at
// ("git status; rm -rf /"), so they are refused in the condition of an allow rule, and
// matches needs a pattern for the whole value: matches("^git (status|log)$"). In rules that
// deny or ask they are free. The pattern of matches is always a literal.
//
// # Maps where lists are meant
//
// Of a map, `in` and the macros all, exists, exists_one, map and filter look at the keys:
// args.to.all(x, x == "ana") holds of {"to": {"ana": "mallory"}}. Whoever makes a call
// chooses whether an argument is a list or a map, so in the condition of an allow rule
// these are errors over a map: a person decides. Free are a map that is written out,
// metadata and run. For one key of an argument there is has(args.x). In rules that deny
// or ask maps are free.
package rules
