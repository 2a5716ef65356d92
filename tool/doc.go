// Package tool is what an agent may ask for: a named action with a JSON Schema
// for its arguments, a class of side effect, and something that carries it out.
//
// You do three things: make tools ([New] for a Go function, [NewExec] for a
// program, [NewHTTP] for a request, or your own [Runner]), put them into a
// [Registry], and hand that to the engines. The registry refuses a tool that
// cannot work (a schema that does not compile, a missing program, a name that
// looks like another) when it is registered, not when a person has said yes.
//
// What a person's yes is bound to is the tool's [Spec]: its name, description,
// schema, side effect, time limit and, where there is one, the string that names
// what runs. Change any of them and the yes no longer fits.
//
// [Invoke] carries out one attempt and sorts what came of it:
//
//	the tool returned a result            succeeded
//	the tool returned an error            failed    tool_error
//	nothing was begun                     failed    not_started
//	time-out, panic, lost connection,     unknown   unknown_outcome
//	killed program, unusable result
//
// The last row is failed (tool_timeout, tool_panic, tool_error) for a tool that is
// read_only: there a repeat does no harm. For one that is declared [Tool.CancelSafe]
// all but the unusable result are: a tool that ended by itself may have had its effect,
// whatever it promised about being stopped.
//
// Arguments reach a tool byte for byte as they were recorded. Nothing is filled
// in, coerced or reformatted on the way: what was checked and approved is what runs.
package tool
