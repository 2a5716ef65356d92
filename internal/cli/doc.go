// Package cli is the command line: a file per command, and a few files that all
// of them share.
//
//	cli.go      the root command, global flags, what every command is given
//	exit.go     exit codes and how an error is told
//	open.go     finding the store and the configuration
//	ids.go      ids by an unambiguous prefix
//	object.go   the objects that --json prints
//	print.go    the one way out: everything printed passes the mask and the escapes
//	review.go   an approval as a person sees it
//	ask.go      the question, and terminal_*.go the keyboard
//
// A command gets what it prints to the terminal only through print.go, so a new
// one cannot forget to mask a secret or to escape what cannot be seen.
package cli
