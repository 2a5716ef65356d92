// Package inbox is where people see what waits for them and decide it, in a browser.
//
// Pages are read from the store, as package review shows it; what a person does goes
// through the HTTP API's own operations with the rights of the token that they signed in
// with. A GET never changes anything. Each form carries the digest of what its page
// showed, and an answer to anything else is refused.
package inbox
