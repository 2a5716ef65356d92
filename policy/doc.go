// Package policy maps a request and its context to a ruling: allow, require
// approval, deny or abort. It fails closed: no answer, an error, an unknown
// outcome and an unusable presentation all mean that nothing runs.
//
// [SideEffects] is the default policy. Package rules has one that is written as
// CEL expressions in a file.
package policy
