// Package gallery renders every state of every page of the inbox, from made-up records,
// for tests and for whoever wants to look at them. Nothing else uses it.
package gallery
