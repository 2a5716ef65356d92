// Package token is who may speak to the daemon: a token is a secret that its holder
// shows, and what it stands for is a row.
//
// The secret itself is stored nowhere: a row has its hash. A token belongs to one
// space, proves one principal and has one [Scope]:
//
//	agent     asks: calls tools, asks questions, waits, takes back what it asked for
//	reviewer  reads everything and decides
//	operator  reads everything, cancels, resumes, manages
//	admin     does all of it, and makes tokens
//
// An agent's token can never decide. Several tokens may prove the same principal; then
// what one of them asked for is the other one's own request too.
//
// A browser that was shown a token has a [SignIn], which ends with the token.
//
// The caller does three things: [Create] a token and hand its secret over once; [Find]
// it by what a stranger shows; [Revoke] it.
package token
